package trust

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/internal/regular"
	"github.com/dsh-go/dsh/limits"
)

// recordVersion is the version of the records' form.
const recordVersion = 1

// record is what is kept of a project.
type record struct {
	Version int               `json:"version"`
	Root    string            `json:"root"`
	Time    time.Time         `json:"time"`
	Files   map[string]string `json:"files"` // path to hash
}

func compareText(a, b string) int { return cmp.Compare(a, b) }

// recordPath is where the record of a project is.
func (s *Store) recordPath(root string) string {
	return filepath.Join(s.dir, recordsName, Hash([]byte(root))+".json")
}

// load reads the record of a project; one that was never made is empty.
func (s *Store) load(root string) (record, error) {
	r, err := readRecord(s.recordPath(root))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err == nil && r.Root != root {
		err = fmt.Errorf("%w: it is of another folder", ErrDamaged)
	}
	if err != nil {
		return record{}, fmt.Errorf("%s: %w (it is in %s); nothing of the project is trusted until 'dsh trust' is run for it", plain.Visible(root), err, s.recordPath(root))
	}
	return r, nil
}

func readRecord(path string) (record, error) {
	text, err := readBounded(path, limits.TrustRecord)
	switch {
	case errors.Is(err, regular.ErrIrregular), errors.Is(err, errLarge):
		return record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return record{}, err
	}
	return parse(text)
}

// parse reads a record, and refuses what is not whole.
func parse(text []byte) (record, error) {
	var r record
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return record{}, fmt.Errorf("%w: %s", ErrDamaged, plain.Error(err.Error()))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return record{}, fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	if r.Version != recordVersion {
		return record{}, fmt.Errorf("%w: its version is %d, and this program reads version %d", ErrDamaged, r.Version, recordVersion)
	}
	for path, hash := range r.Files {
		if sum, err := hex.DecodeString(hash); err != nil || len(sum) != 32 || strings.ToLower(hash) != hash || !fs.ValidPath(path) {
			return record{}, fmt.Errorf("%w: what it says of %q makes no sense", ErrDamaged, shown(path))
		}
	}
	return r, nil
}

var errLarge = errors.New("it is larger than anything that was written there")

func readBounded(path string, limit int) ([]byte, error) {
	f, _, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = errLarge
	}
	return text, err
}

// save writes the contents of files, then the record, then drops what is too much.
// The caller has the lock.
func (s *Store) save(root string, r record, files []File) error {
	if len(r.Files) > limits.TrustFiles {
		return fmt.Errorf("%d files, more than the limit of %d", len(r.Files), limits.TrustFiles)
	}
	for _, name := range []string{recordsName, contentsName} {
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o700); err != nil {
			return err
		}
	}
	if len(r.Files) == 0 {
		err := os.Remove(s.recordPath(root))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, atomicfile.SyncFolder(filepath.Join(s.dir, recordsName)))
	}
	for _, f := range files {
		if err := s.keep(f.Content); err != nil {
			return err
		}
	}
	r.Version, r.Root, r.Time = recordVersion, root, time.Now().UTC().Truncate(time.Second)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= limits.TrustRecord {
		return fmt.Errorf("the names of the project's files have more than %d bytes together", limits.TrustRecord)
	}
	if err := atomicfile.Write(s.recordPath(root), append(text, '\n'), 0o600); err != nil {
		return err
	}
	s.prune()
	return nil
}

// keep keeps a content for diffs. One that is there already becomes the youngest.
func (s *Store) keep(content []byte) error {
	path := s.contentPath(Hash(content))
	if have, err := readBounded(path, limits.TrustFile); err == nil && bytes.Equal(have, content) {
		now := time.Now()
		return os.Chtimes(path, now, now)
	}
	return atomicfile.Write(path, content, 0o600)
}

func (s *Store) contentPath(hash string) string { return filepath.Join(s.dir, contentsName, hash) }

// content is a content that was trusted, if it is kept still.
func (s *Store) content(hash string) ([]byte, bool) {
	text, err := readBounded(s.contentPath(hash), limits.TrustFile)
	return text, err == nil && Hash(text) == hash
}

// prune drops the oldest contents and records beyond the limits, and what a process
// that was killed left. It does as much as it can: the next one does the rest.
func (s *Store) prune() {
	prune(filepath.Join(s.dir, recordsName), limits.TrustProjects, limits.TrustProjects*limits.TrustRecord)
	prune(filepath.Join(s.dir, contentsName), limits.TrustContents, limits.TrustContentBytes)
}

func prune(dir string, most, bytes int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var infos []fs.FileInfo
	for _, e := range entries {
		if atomicfile.Temporary(e.Name()) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for i, info := range infos {
		if bytes -= int(info.Size()); i >= most || bytes < 0 {
			_ = os.Remove(filepath.Join(dir, info.Name()))
		}
	}
}

// Projects lists the projects of which something is trusted, by folder. What cannot
// be read comes as the error, beside those that can.
func (s *Store) Projects() ([]Project, error) {
	dir := filepath.Join(s.dir, recordsName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list trust: %w", err)
	}
	var list []Project
	var faults []error
	for _, e := range entries {
		if atomicfile.Temporary(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		r, err := readRecord(path)
		if err == nil && s.recordPath(r.Root) != path {
			err = fmt.Errorf("%w: it is of another folder", ErrDamaged)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // forgotten meanwhile
		case err != nil:
			faults = append(faults, fmt.Errorf("list trust: %s: %w", path, err))
		default:
			list = append(list, Project{r.Root, len(r.Files), r.Time})
		}
	}
	slices.SortFunc(list, func(a, b Project) int { return cmp.Compare(a.Root, b.Root) })
	return list, errors.Join(faults...)
}
