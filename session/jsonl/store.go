// Package jsonl is the store that keeps each session as a folder of plain files:
//
//	<root>/<id>/log.jsonl             the header and one event on each line
//	<root>/<id>/attachments/<sha256>  bytes that messages name
//	<root>/<id>/lock                  held by the writer, says who it is
//
// Folders have the mode 0700, files 0600. Names that begin with a dot are folders
// on their way in or out; what a crash left of them is removed by the next New.
//
// # Durability
//
// A batch is one write at the end of the log and one sync. A session appears, and
// goes, by one rename of its folder, and parents are synced. A write that fails,
// as on a full disk, is taken back, and the next attempt starts where it did; after
// a failed sync nothing can be said of the file, so its writer is finished and the
// session has to be opened again.
//
// # What is found after a crash
//
// The end of the log may hold a line without its newline: Open cuts it off, Read
// leaves it out. Nothing else is tolerated: a line that is not the next event is
// session.ErrCorrupt with its number, and the files stay as they are.
//
// # Writers and readers
//
// The writer holds a flock on the file lock, which the system releases when the
// process dies; a second writer, in this process or another, gets a
// *session.LockedError. Readers need no lock: they see whole lines only.
// Where the system has no flock, sessions cannot be opened for writing.
package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/internal/regular"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
)

const (
	logName  = "log.jsonl"
	lockName = "lock"
	attName  = "attachments"

	incoming = ".new-"     // a folder that is being made
	outgoing = ".deleted-" // a folder that is being removed
)

// ErrCopied says that a folder has the log of another session, as a copy has.
var ErrCopied = errors.New("it is the log of session")

// Store is a session.Store in a directory.
type Store struct {
	root string
}

var _ session.Store = (*Store)(nil)

// New returns the store in a directory, which is made, with the mode 0700, when
// the first session is. It removes what crashes left of sessions that were being
// made or removed.
func New(root string) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open session store: %w", err)
	}
	s := &Store{root: root}
	if err := s.sweep(); err != nil {
		return nil, fmt.Errorf("open session store: %w", err)
	}
	return s, nil
}

// Root returns the directory.
func (s *Store) Root() string { return s.root }

// sweep removes left-overs that nobody holds.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(s.root, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), outgoing):
			_ = os.RemoveAll(dir) // a store that cannot be written to is still read
		case strings.HasPrefix(e.Name(), incoming):
			if held, err := acquire(dir, e.Name(), false); err == nil {
				_ = os.RemoveAll(dir)
				held.release()
			}
		}
	}
	return nil
}

// dir returns the folder of a session; the id is checked.
func (s *Store) dir(id string) (string, error) {
	if err := session.CheckID(id); err != nil {
		return "", err
	}
	return filepath.Join(s.root, id), nil
}

// Create implements session.Store.
func (s *Store) Create(ctx context.Context, meta session.Meta) (*session.Session, error) {
	if meta.CreatedAt == 0 {
		meta.CreatedAt = time.Now().UnixMilli()
	}
	if err := errors.Join(ctx.Err(), meta.Check()); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	l, err := session.NewLog(meta, nil)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	w, err := s.build(meta, nil, "")
	if err != nil {
		return nil, fmt.Errorf("create session %s: %w", meta.ID, err)
	}
	return session.NewSession(l, w, 0), nil
}

// Open implements session.Store.
func (s *Store) Open(ctx context.Context, id string) (*session.Session, error) {
	opened, err := s.open(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return opened, nil
}

func (s *Store) open(ctx context.Context, id string) (*session.Session, error) {
	dir, err := s.dir(id)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	// What a newer program wrote is not touched, not even its lock.
	if _, err := readMeta(dir, id); err != nil {
		return nil, err
	}
	held, err := acquire(dir, id, true)
	if err != nil {
		return nil, err
	}
	w := &writer{root: s.root, id: id, dir: dir, lock: held}
	l, err := w.load()
	if err != nil {
		w.abandon()
		return nil, err
	}
	opened, err := session.Resume(l, w)
	if err != nil {
		w.abandon()
		return nil, err
	}
	return opened, nil
}

// Read implements session.Store.
func (s *Store) Read(ctx context.Context, id string) (*session.Log, error) {
	dir, err := s.dir(id)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	inUse := holder(dir, id) != nil // before the log is read: it may end meanwhile, as it began
	l, _, _, err := readLog(dir, id)
	if err == nil && !inUse {
		_, err = l.Repair()
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	l.Close()
	return l, nil
}

// Has reports whether there is something under the id of a session.
func (s *Store) Has(id string) bool {
	dir, err := s.dir(id)
	if err == nil {
		_, err = os.Lstat(dir)
	}
	return err == nil
}

// Holder says who has a session open for writing; nil: nobody. It does not disturb
// who is about to open it.
func (s *Store) Holder(id string) *session.LockedError {
	if dir, err := s.dir(id); err == nil {
		return holder(dir, id)
	}
	return nil
}

// readLog reads a session's log, and how many of its bytes are whole lines.
func readLog(dir, id string) (l *session.Log, size, kept int64, err error) {
	path := filepath.Join(dir, logName)
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, 0, absent(dir, id, err)
	}
	if info.Size() > limits.SessionBytes+limits.SessionEvent {
		return nil, 0, 0, fmt.Errorf("%s: %w: it has %d bytes, at most %d are read", path, session.ErrFull, info.Size(), int64(limits.SessionBytes))
	}
	text, err := readFile(path, limits.SessionBytes+limits.SessionEvent)
	if err != nil {
		return nil, 0, 0, absent(dir, id, err)
	}
	l, kept, err = session.Decode(string(text), nil)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("%s: %w; nothing was changed", path, err)
	}
	if l.Meta().ID != id {
		return nil, 0, 0, foreign(path, l.Meta().ID)
	}
	return l, int64(len(text)), kept, nil
}

// foreign says that a log is another session's, as in a folder that was copied.
func foreign(path, owner string) error {
	return fmt.Errorf("%s: %w: line 1: %w %s; nothing was changed", path, session.ErrCorrupt, ErrCopied, owner)
}

// absent names a session that is not there, or says that its log is not.
func absent(dir, id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(dir); there == nil {
			return fmt.Errorf("%s: %w: it has no %s", dir, session.ErrCorrupt, logName)
		}
	}
	return missing(id, err)
}

// missing names a session that is not there.
func missing(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return err
}

// Delete implements session.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := s.remove(ctx, id); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, id string) error {
	dir, err := s.dir(id)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	// What has no log has the id too, and goes.
	if _, err := os.Lstat(dir); err != nil {
		return missing(id, err)
	}
	held, err := acquire(dir, id, true)
	if errors.Is(err, regular.ErrIrregular) {
		return discard(s.root, dir, id) // nobody can hold that
	}
	if err != nil {
		return err
	}
	defer held.release()
	return discard(s.root, dir, id)
}

// discard takes a session's folder out of the store. The caller has its lock.
func discard(root, dir, id string) error {
	gone := filepath.Join(root, outgoing+id+"-"+suffix())
	if err := os.Rename(dir, gone); err != nil {
		return err
	}
	return errors.Join(atomicfile.SyncFolder(root), os.RemoveAll(gone))
}

// Export implements session.Store.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) error {
	l, err := s.Read(ctx, id)
	if err != nil {
		return fmt.Errorf("export session: %w", err)
	}
	dir, err := s.dir(id)
	if err != nil {
		return fmt.Errorf("export session: %w", err)
	}
	hashes, _, err := attachments(filepath.Join(dir, attName))
	if err == nil {
		err = session.WriteExport(w, l, hashes, func(hash string) ([]byte, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return readAttachment(dir, hash)
		})
	}
	if err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	return nil
}

// Attachment implements session.Store.
func (s *Store) Attachment(ctx context.Context, id, hash string) ([]byte, error) {
	dir, err := s.dir(id)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read attachment: %w", err)
	}
	data, err := readAttachment(dir, hash)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	return data, nil
}
