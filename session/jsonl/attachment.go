package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// attachments returns the hashes in a folder, sorted, and their sizes together.
func attachments(dir string) (hashes []string, total int64, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list attachments: %w", err)
	}
	for _, e := range entries {
		if !message.ValidHash(e.Name()) {
			continue // one that a crash left unfinished
		}
		info, err := e.Info()
		if err != nil {
			return nil, 0, fmt.Errorf("list attachments: %w", err)
		}
		if !info.Mode().IsRegular() {
			return nil, 0, irregular(filepath.Join(dir, e.Name()))
		}
		hashes = append(hashes, e.Name())
		total += info.Size()
	}
	return hashes, total, nil
}

// count reads which attachments there are, once. The caller has the mutex.
func (w *writer) count() error {
	if w.known != nil {
		return nil
	}
	hashes, total, err := attachments(filepath.Join(w.dir, attName))
	if err != nil {
		return err
	}
	w.known, w.total = make(map[string]bool, len(hashes)), total
	for _, h := range hashes {
		w.known[h] = true
	}
	return nil
}

// PutAttachment implements session.Sink.
func (w *writer) PutAttachment(hash string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.count(); err != nil || w.known[hash] {
		return err
	}
	if len(w.known) >= limits.SessionAttachments || w.total+int64(len(data)) > limits.SessionAttachmentsAll {
		return fmt.Errorf("%w: it has %d attachments of %d bytes; at most %d, of %d bytes together, are kept",
			session.ErrFull, len(w.known), w.total, limits.SessionAttachments, int64(limits.SessionAttachmentsAll))
	}
	dir := filepath.Join(w.dir, attName)
	if err := os.Mkdir(dir, 0o700); err == nil {
		err = atomicfile.SyncFolder(w.dir)
		if err != nil {
			return explain(err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return explain(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, hash), data, 0o600); err != nil {
		return explain(err)
	}
	w.known[hash] = true
	w.total += int64(len(data))
	return nil
}

// Attachment implements session.Sink.
func (w *writer) Attachment(hash string) ([]byte, error) { return readAttachment(w.dir, hash) }

// HasAttachment implements session.Sink.
func (w *writer) HasAttachment(hash string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count() == nil && w.known[hash]
}

func readAttachment(dir, hash string) ([]byte, error) {
	if !message.ValidHash(hash) {
		return nil, fmt.Errorf("read attachment %s: %w; an attachment is named by the 64 hex digits of its sha256", plain.Name(hash), session.ErrNotFound)
	}
	data, err := readFile(filepath.Join(dir, attName, hash), limits.SessionAttachment+1)
	if errors.Is(err, fs.ErrNotExist) {
		err = session.ErrNotFound
	}
	if err == nil {
		err = session.CheckAttachment(hash, data)
	}
	if err != nil {
		return nil, fmt.Errorf("read attachment %s: %w", hash, err)
	}
	return data, nil
}

// copyAttachments carries attachments to a new session. Files are never changed,
// so two sessions may share one.
func copyAttachments(from, to string) error {
	hashes, _, err := attachments(from)
	if err != nil || len(hashes) == 0 {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, h := range hashes {
		source, target := filepath.Join(from, h), filepath.Join(to, h)
		if os.Link(source, target) == nil {
			continue
		}
		data, err := readFile(source, limits.SessionAttachment)
		if err == nil {
			err = atomicfile.Write(filepath.Join(to, h), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("copy attachment: %w", err)
		}
	}
	return atomicfile.SyncFolder(to)
}
