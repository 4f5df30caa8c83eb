// Package memory is a store of sessions for tests: what is durable lives as long
// as the [Store]. It behaves as package sessiontest says, and can be made to fail.
package memory

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
)

// Store is a session.Store in memory. The zero value is an empty one.
type Store struct {
	mu       sync.Mutex // guards everything below it; a leaf
	sessions map[string]*record
	fail     error
	writes   int
}

var _ session.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{} }

// record is one session's durable state; the store's mutex guards it.
type record struct {
	store       *Store
	meta        session.Meta
	events      []session.Event
	attachments map[string][]byte
	bytes       int64
	updated     time.Time
	since       time.Time // when the writer opened it
	open        bool
}

// Fail makes every write fail with err from now on; nil ends that.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Writes returns how many batches were written.
func (s *Store) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Crash drops a session's writer as the death of its process would: what is not
// durable is lost when it is opened again. The *session.Session is not usable.
func (s *Store) Crash(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.sessions[id]; r != nil {
		copied := *r
		copied.open = false
		copied.events = slices.Clip(r.events) // the writer that is dropped may go on appending to its own
		s.sessions[id] = &copied
	}
}

// Create implements session.Store.
func (s *Store) Create(_ context.Context, meta session.Meta) (*session.Session, error) {
	now := time.Now()
	if meta.CreatedAt == 0 {
		meta.CreatedAt = now.UnixMilli()
	}
	if err := meta.Check(); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	l, err := session.NewLog(meta, nil)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[meta.ID] != nil {
		return nil, fmt.Errorf("create session %s: %w", meta.ID, session.ErrExists)
	}
	r := &record{store: s, meta: meta, attachments: map[string][]byte{}, updated: now, since: now, open: true}
	s.put(r)
	return session.NewSession(l, r, 0), nil
}

func (s *Store) put(r *record) {
	if s.sessions == nil {
		s.sessions = map[string]*record{}
	}
	s.sessions[r.meta.ID] = r
}

// get returns a session's record. The caller has the mutex.
func (s *Store) get(id string) (*record, error) {
	if err := session.CheckID(id); err != nil {
		return nil, err
	}
	r := s.sessions[id]
	if r == nil {
		return nil, fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return r, nil
}

// free is get for a session that nobody may have open.
func (s *Store) free(id string) (*record, error) {
	r, err := s.get(id)
	if err == nil && r.open {
		err = &session.LockedError{ID: id, PID: os.Getpid(), Since: r.since}
	}
	return r, err
}

// Open implements session.Store.
func (s *Store) Open(_ context.Context, id string) (*session.Session, error) {
	s.mu.Lock()
	r, err := s.free(id)
	if err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("open session: %w", err)
	}
	r.open, r.since = true, time.Now()
	events := r.events
	s.mu.Unlock()
	l, err := session.NewLog(r.meta, events)
	var opened *session.Session
	if err == nil {
		opened, err = session.Resume(l, r)
	}
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("open session: %w", err)
	}
	return opened, nil
}

// Read implements session.Store.
func (s *Store) Read(_ context.Context, id string) (*session.Log, error) { return s.read(id, false) }

// read is Read; repair is for a session that is in use, too.
func (s *Store) read(id string, repair bool) (*session.Log, error) {
	s.mu.Lock()
	r, err := s.get(id)
	if err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("read session: %w", err)
	}
	events, repair := r.events, repair || !r.open
	s.mu.Unlock()
	l, err := session.NewLog(r.meta, events)
	if err == nil && repair {
		_, err = l.Repair()
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	l.Close()
	return l, nil
}

// List implements session.Store.
func (s *Store) List(ctx context.Context, filter session.Filter) ([]session.Summary, error) {
	s.mu.Lock()
	var list []session.Summary
	for _, r := range s.sessions {
		if filter.Cwd == "" || filter.Cwd == r.meta.Cwd {
			sum := session.Summary{Meta: r.meta, Updated: r.updated, Bytes: r.bytes}
			if r.open {
				sum.Holder = &session.LockedError{ID: r.meta.ID, PID: os.Getpid(), Since: r.since}
			}
			list = append(list, sum)
		}
	}
	s.mu.Unlock()
	session.SortSummaries(list)
	if filter.Limit > 0 && len(list) > filter.Limit {
		list = list[:filter.Limit]
	}
	for i := range list {
		l, err := s.Read(ctx, list[i].Meta.ID)
		if err != nil {
			list[i].Err = err
			continue
		}
		list[i].Title = l.Title()
	}
	return list, nil
}

// Delete implements session.Store.
func (s *Store) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.free(id); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	delete(s.sessions, id)
	return nil
}

// Fork implements session.Store.
func (s *Store) Fork(_ context.Context, id string, at int64, newID string) (session.Meta, error) {
	l, err := s.read(id, true)
	if err != nil {
		return session.Meta{}, fmt.Errorf("fork session: %w", err)
	}
	meta, events, err := l.Fork(at, newID)
	if err != nil {
		return session.Meta{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[newID] != nil {
		return session.Meta{}, fmt.Errorf("fork session %s: %s: %w", id, newID, session.ErrExists)
	}
	r, err := s.get(id)
	if err != nil {
		return session.Meta{}, fmt.Errorf("fork session: %w", err)
	}
	child := &record{store: s, meta: meta, events: slices.Clip(events), attachments: maps.Clone(r.attachments), updated: time.Now()}
	for _, e := range events {
		child.bytes += int64(len(e.Line())) + 1
	}
	s.put(child)
	return meta, nil
}

// Export implements session.Store.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) error {
	l, err := s.Read(ctx, id)
	if err != nil {
		return fmt.Errorf("export session: %w", err)
	}
	s.mu.Lock()
	r, err := s.get(id)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("export session: %w", err)
	}
	hashes := slices.Sorted(maps.Keys(r.attachments))
	s.mu.Unlock()
	err = session.WriteExport(w, l, hashes, r.Attachment)
	if err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	return nil
}

// Attachment implements session.Store.
func (s *Store) Attachment(_ context.Context, id, hash string) ([]byte, error) {
	s.mu.Lock()
	r, err := s.get(id)
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("read attachment: %w", err)
	}
	return r.Attachment(hash)
}

var _ session.Sink = (*record)(nil)

// Write implements session.Sink.
func (r *record) Write(events []session.Event) error {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if r.store.fail != nil {
		return r.store.fail
	}
	r.events = append(r.events, events...)
	for _, e := range events {
		r.bytes += int64(len(e.Line())) + 1
	}
	r.updated = time.Now()
	r.store.writes++
	return nil
}

// PutAttachment implements session.Sink.
func (r *record) PutAttachment(hash string, data []byte) error {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if r.store.fail != nil {
		return r.store.fail
	}
	if _, ok := r.attachments[hash]; ok {
		return nil
	}
	size := int64(len(data))
	for _, a := range r.attachments {
		size += int64(len(a))
	}
	if len(r.attachments) >= limits.SessionAttachments || size > limits.SessionAttachmentsAll {
		return fmt.Errorf("%w: it has %d attachments; at most %d, of %d bytes together, are kept",
			session.ErrFull, len(r.attachments), limits.SessionAttachments, int64(limits.SessionAttachmentsAll))
	}
	r.attachments[hash] = slices.Clone(data)
	return nil
}

// Attachment implements session.Sink.
func (r *record) Attachment(hash string) ([]byte, error) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	data, ok := r.attachments[hash]
	if !ok {
		return nil, fmt.Errorf("attachment of session %s: %w", r.meta.ID, session.ErrNotFound)
	}
	return slices.Clone(data), nil
}

// HasAttachment implements session.Sink.
func (r *record) HasAttachment(hash string) bool {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	_, ok := r.attachments[hash]
	return ok
}

// Close implements session.Sink.
func (r *record) Close() error {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.open = false
	if len(r.events) == 0 && r.store.sessions[r.meta.ID] == r {
		delete(r.store.sessions, r.meta.ID)
	}
	return nil
}
