package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"
)

// ErrDamaged says that a record of the store cannot be read. What it is about is
// trusted by nobody until it is trusted again.
var ErrDamaged = errors.New("the record of what is trusted is damaged")

// ErrBusy says that another process has the store's lock for too long.
var ErrBusy = errors.New("another process is writing the store of trust")

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
	// Diff shows the change as a unified diff, of a new file all of it. It is safe to
	// print: control characters are visible. It is bounded by limits.TrustDiff; what is
	// left out is said.
	Diff string
	// Lost says that the content which was trusted is not kept any more, so that Diff
	// shows all of the new one.
	Lost bool
}

// State says what of a project's files is trusted.
type State struct {
	Root    string   // of the project, links resolved
	New     []Change // never trusted, by path
	Changed []Change // trusted with another content
	Gone    []string // trusted, and not among the files
	Trusted []string // as they are
}

// Complete says whether every file is trusted, so there is nothing to ask.
func (s State) Complete() bool { return len(s.New)+len(s.Changed) == 0 }

// Project is what the store says of one project.
type Project struct {
	Root  string
	Files int
	Time  time.Time // when a file of it was trusted last
}

// Store is what a person trusted. It is made by [Open].
type Store struct{ dir string }

// Open gives the store below dsh's own folder, such as fs.Home(). Nothing is made or
// read before it is needed. An empty home is an error.
func Open(home string) (*Store, error) {
	if home == "" {
		return nil, errors.New("open the store of trust: there is no home folder for it: set DSH_HOME to a folder")
	}
	return &Store{filepath.Join(home, "trust")}, nil
}

// Check says what of the files is trusted for the project. An error that is
// [ErrDamaged], or any other, comes with a state in which nothing is.
func (s *Store) Check(root string, files []File) (State, error) {
	return State{}, errors.ErrUnsupported
}

// Trust makes exactly these files, with these bytes, what is trusted of the project.
// What was trusted and is not among them is forgotten.
func (s *Store) Trust(ctx context.Context, root string, files []File) error {
	return errors.ErrUnsupported
}

// Add trusts one file, with these bytes, beside what is trusted of the project.
func (s *Store) Add(ctx context.Context, root string, f File) error {
	return errors.ErrUnsupported
}

// Wrote trusts what an agent wrote and a person allowed: path is absolute with links
// resolved, content the very bytes, before what they replaced where only a part of it
// was shown (an edit): then that has to be trusted already, or nothing is done. It
// reports whether content is trusted now; false for a path that is no project's file.
// It is what permission.Config.Trusted is for.
func (s *Store) Wrote(ctx context.Context, path string, before *string, content string) (bool, error) {
	return false, errors.ErrUnsupported
}

// Forget trusts nothing of the project any more, and says whether anything was.
func (s *Store) Forget(ctx context.Context, root string) (bool, error) {
	return false, errors.ErrUnsupported
}

// Projects lists the projects of which something is trusted, by folder. Damaged
// records come as the error, beside those that can be read.
func (s *Store) Projects() ([]Project, error) { return nil, errors.ErrUnsupported }
