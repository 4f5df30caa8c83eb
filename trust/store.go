package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/limits"
)

// ErrDamaged says that a record of the store cannot be read. Nothing of what it is
// about is trusted until it is trusted again.
var ErrDamaged = errors.New("the record of what is trusted is damaged")

// A File is a file of a project, as the bytes that were read.
type File struct {
	Path    string // below the project's folder, with slashes: ".dsh/plugins/x.js"
	Content []byte
}

// Hash is the SHA-256 of a content, in hex: what is trusted.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// A Change is a file that is not trusted as it is.
type Change struct {
	Path string
	Hash string // of the content that is there now
	Size int    // bytes of it
	// Diff shows the change as a unified diff, of a new file all of it; "" of an empty
	// one. It is safe to print: control characters are visible. It is bounded by
	// limits.TrustDiff; what is left out is said.
	Diff string
	// Lost says that the content which was trusted is not kept any more, so that Diff
	// shows all of the new one.
	Lost bool
}

// State says what of a project's files is trusted.
type State struct {
	Root    string   // of the project, links resolved
	New     []Change // never trusted, by path
	Changed []Change // trusted with another content, by path
	Gone    []string // trusted, and not among the files, by path
	Trusted []string // as they are, by path
}

// Complete says whether every file is trusted, so there is nothing to ask.
func (s State) Complete() bool { return len(s.New)+len(s.Changed) == 0 }

// Allows says whether a file is trusted as it was checked.
func (s State) Allows(path string) bool {
	_, ok := slices.BinarySearch(s.Trusted, path)
	return ok
}

// Project is what the store says of one project.
type Project struct {
	Root  string
	Files int
	Time  time.Time // when it was trusted last
}

// Store is what a person trusted. It is made by [Open].
type Store struct{ dir string }

// The folders and the lock of a store.
const (
	recordsName  = "projects"
	contentsName = "contents"
	lockName     = "lock"
)

// Open gives the store below dsh's own folder, such as fs.Home(). Nothing is made or
// read before it is needed. An empty home is an error.
func Open(home string) (*Store, error) {
	if home == "" {
		return nil, errors.New("open the store of trust: there is no home folder for it; set DSH_HOME to a folder")
	}
	abs, err := filepath.Abs(home)
	if err != nil {
		return nil, fmt.Errorf("open the store of trust: %w", err)
	}
	return &Store{filepath.Join(abs, "trust")}, nil
}

// Check says what of the files is trusted for the project. With an error, which is
// [ErrDamaged] or of the file system, comes a state in which nothing is.
func (s *Store) Check(root string, files []File) (State, error) {
	root, err := canonical(root)
	if err != nil {
		return s.compare(State{Root: root}, record{}, files), fmt.Errorf("check trust: %w", err)
	}
	r, err := s.load(root)
	if err != nil {
		err = fmt.Errorf("check trust: %w", err)
	}
	return s.compare(State{Root: root}, r, files), err
}

// compare fills in a state.
func (s *Store) compare(state State, r record, files []File) State {
	there := map[string]bool{}
	for _, f := range sorted(files) {
		if there[f.Path] {
			continue
		}
		there[f.Path] = true
		now, was := Hash(f.Content), r.Files[f.Path]
		switch was {
		case now:
			state.Trusted = append(state.Trusted, f.Path)
		case "":
			state.New = append(state.New, change(f, now, nil, false))
		default:
			old, kept := s.content(was)
			state.Changed = append(state.Changed, change(f, now, old, !kept))
		}
	}
	for path := range r.Files {
		if !there[path] {
			state.Gone = append(state.Gone, path)
		}
	}
	slices.Sort(state.Gone)
	return state
}

// Trust makes exactly these files, with these bytes, what is trusted of the project.
// What was trusted and is not among them is forgotten. Of a path that is given twice
// the first counts. No files: the project is forgotten.
func (s *Store) Trust(ctx context.Context, root string, files []File) error {
	return s.change(ctx, "trust files", root, func(r *record, _ error) ([]File, error) {
		r.Files = map[string]string{}
		var list []File
		for _, f := range sorted(files) {
			if r.Files[f.Path] != "" {
				continue
			}
			if err := f.check(); err != nil {
				return nil, err
			}
			r.Files[f.Path] = Hash(f.Content)
			list = append(list, f)
		}
		return list, nil
	})
}

// Add trusts one file, with these bytes, beside what is trusted of the project. A
// record that is damaged is an error and stays: to trust the whole project mends it.
func (s *Store) Add(ctx context.Context, root string, f File) error {
	return s.change(ctx, "trust file", root, func(r *record, damaged error) ([]File, error) {
		if damaged != nil {
			return nil, damaged
		}
		if err := f.check(); err != nil {
			return nil, err
		}
		r.Files[f.Path] = Hash(f.Content)
		return []File{f}, nil
	})
}

// Wrote trusts what an agent wrote and a person allowed: path is absolute with links
// resolved, content the very bytes; before is what they replaced where the person saw
// only a part of it (an edit): then that has to be trusted already, or nothing is done.
// It says whether content is trusted now: not of a path that is no project's, nor of
// a file that [Read] would not read.
func (s *Store) Wrote(ctx context.Context, path string, before *string, content string) (bool, error) {
	root, rel, ok := Locate(path)
	if !ok || !loadable(rel) {
		return false, nil
	}
	f, trusted := File{rel, []byte(content)}, false
	err := s.change(ctx, "trust what was written", root, func(r *record, damaged error) ([]File, error) {
		if damaged != nil {
			return nil, damaged
		}
		if before != nil && r.Files[rel] != Hash([]byte(*before)) {
			return nil, nil
		}
		if err := f.check(); err != nil {
			return nil, err
		}
		r.Files[rel], trusted = Hash(f.Content), true
		return []File{f}, nil
	})
	return trusted && err == nil, err
}

// Forget trusts nothing of the project any more, and says whether anything was. It
// mends a damaged record, too.
func (s *Store) Forget(ctx context.Context, root string) (bool, error) {
	was := false
	err := s.change(ctx, "forget trust", root, func(r *record, damaged error) ([]File, error) {
		was = damaged != nil || len(r.Files) > 0
		r.Files = nil
		return []File{}, nil //nolint:nilerr // forgetting mends a damaged record
	})
	return was && err == nil, err
}

// change changes the record of a project with the lock held. What f returns nil for
// is left alone; else the files are what is new in the record.
func (s *Store) change(ctx context.Context, doing, root string, f func(r *record, damaged error) ([]File, error)) error {
	root, err := canonical(root)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	release, err := atomicfile.Lock(ctx, filepath.Join(s.dir, lockName), limits.TrustLock)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer release()
	r, damaged := s.load(root)
	if damaged != nil && !errors.Is(damaged, ErrDamaged) {
		return fmt.Errorf("%s: %w", doing, damaged)
	}
	if r.Files == nil {
		r.Files = map[string]string{}
	}
	list, err := f(&r, damaged)
	if err == nil && list != nil {
		err = s.save(root, r, list)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// check refuses what no project's file can be.
func (f File) check() error {
	if !fs.ValidPath(f.Path) || f.Path == "." {
		return fmt.Errorf("%q is no path of a file below the project's folder, with slashes", shown(f.Path))
	}
	if len(f.Content) > limits.TrustFile {
		return fmt.Errorf("%s: it has %d bytes, more than the limit of %d", shown(f.Path), len(f.Content), limits.TrustFile)
	}
	return nil
}

func sorted(files []File) []File {
	return slices.SortedStableFunc(slices.Values(files), func(a, b File) int { return compareText(a.Path, b.Path) })
}

// canonical is the path by which a project is known.
func canonical(root string) (string, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return root, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return abs, nil // one that is gone can be forgotten
	}
	if err != nil {
		return abs, err
	}
	return real, nil
}
