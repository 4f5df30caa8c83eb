package jsonl

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/session"
)

// build makes a session's folder under another name, durable with everything in
// it, and renames it into its place. The writer that it returns holds the lock.
// Attachments come from the folder att, "" for none.
func (s *Store) build(meta session.Meta, events []session.Event, att string) (w *writer, err error) {
	final, err := s.dir(meta.ID)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(final); err == nil {
		return nil, session.ErrExists
	}
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		return nil, explain(err)
	}
	tmp := filepath.Join(s.root, incoming+meta.ID+"-"+suffix())
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, explain(err)
	}
	w = &writer{root: s.root, id: meta.ID, dir: final, empty: len(events) == 0}
	defer func() {
		if err != nil {
			err = errors.Join(explain(err), os.RemoveAll(tmp))
			w.abandon()
			w = nil
		}
	}()
	if w.lock, err = acquire(tmp, meta.ID, true); err != nil {
		return w, err
	}
	if err = w.fill(tmp, meta, events); err != nil {
		return w, err
	}
	if att != "" {
		if err = copyAttachments(att, filepath.Join(tmp, attName)); err != nil {
			return w, err
		}
	}
	if err = atomicfile.SyncFolder(tmp); err != nil {
		return w, err
	}
	if err = os.Rename(tmp, final); err != nil {
		if _, there := os.Lstat(final); there == nil {
			err = session.ErrExists
		}
		return w, err
	}
	if err = atomicfile.SyncFolder(s.root); err != nil {
		err = errors.Join(err, os.RemoveAll(final))
	}
	return w, err
}

// fill writes the log of a new session and opens it.
func (w *writer) fill(dir string, meta session.Meta, events []session.Event) error {
	var text strings.Builder
	text.WriteString(meta.Line())
	text.WriteByte('\n')
	for _, e := range events {
		text.WriteString(e.Line())
		text.WriteByte('\n')
	}
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w.file, w.size = f, int64(text.Len())
	if _, err := io.WriteString(f, text.String()); err != nil {
		return err
	}
	return f.Sync()
}

// suffix makes a name that no other process chooses.
func suffix() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// explain adds what a person can do about an error of the system.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return fmt.Errorf("%w: the disk is full or a quota is reached; free some space: what is durable is not lost", err)
	case errors.Is(err, fs.ErrPermission) || isReadOnly(err):
		return fmt.Errorf("%w: sessions are kept there and cannot be written; set DSH_HOME to a directory that can", err)
	}
	return err
}
