package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session/message"
)

// A Sink is where a store keeps what one session's writer appends. Write and
// Close are called by one goroutine at a time; the attachment methods by any.
type Sink interface {
	// Write makes a batch of events durable, in order, behind those before. After
	// an error none of the batch counts, and Write is called with it again, longer
	// perhaps, unless the error wraps ErrClosed.
	Write(events []Event) error
	// PutAttachment makes bytes durable under their hash; once is enough.
	PutAttachment(hash string, data []byte) error
	// Attachment returns the bytes of an attachment: ErrNotFound.
	Attachment(hash string) ([]byte, error)
	// HasAttachment reports whether the bytes are there.
	HasAttachment(hash string) bool
	// Close gives the session free for the next writer.
	Close() error
}

// A Session is a log that one writer has open in a store. All methods may be
// called from any goroutine.
type Session struct {
	*Log
	sink Sink

	flushing chan struct{} // holds one token while a batch is written
	written  int64         // events that are durable; whoever has the token

	mu      sync.Mutex // guards what follows; a leaf
	timer   *time.Timer
	ended   bool
	err     error         // of the last batch
	durable int64         // written, for those who follow
	more    chan struct{} // closed when durable or ended changes; nil: nobody waits
}

// NewSession is for stores: it joins a log, of which the first durable events are
// in the sink, with the sink that takes the others.
func NewSession(l *Log, sink Sink, durable int64) *Session {
	return &Session{Log: l, sink: sink, flushing: make(chan struct{}, 1), written: durable, durable: durable}
}

// Resume is for stores: it repairs a log that was just read, makes that durable,
// and marks the end of the seed. On an error the sink is still the caller's.
func Resume(l *Log, sink Sink) (*Session, error) {
	durable := l.Len()
	s := NewSession(l, sink, durable)
	if repaired, err := l.Repair(); err != nil {
		return nil, err
	} else if len(repaired) > 0 {
		if err := sink.Write(repaired); err != nil {
			return nil, fmt.Errorf("repair session %s: %w", l.meta.ID, err)
		}
		s.written += int64(len(repaired))
		s.durable = s.written
	}
	if n := l.Len(); n > 0 && l.FirstLive() != n {
		if _, err := l.append(0, math.MaxInt64, []Payload{EndSeed{}}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Append appends as [Log.Append] does. What was appended is written durably by
// the next Checkpoint, or by itself within limits.SessionWindow.
//
// Images must have been attached before: a message that names an attachment which
// the session does not have is ErrNotFound.
func (s *Session) Append(payloads ...Payload) ([]Event, error) {
	for i, p := range payloads {
		if err := s.checkAttachments(p); err != nil {
			return nil, fmt.Errorf("append events: payload %d: %w", i, err)
		}
	}
	events, err := s.Log.Append(payloads...)
	if err == nil && len(events) > 0 {
		s.arm()
	}
	return events, err
}

func (s *Session) checkAttachments(p Payload) error {
	var m message.Message
	switch p := p.(type) {
	case UserMessage:
		m = p.Message
	case AssistantMessage:
		m = p.Message
	case Result:
		m = p.Message
	default:
		return nil
	}
	for _, a := range m.Attachments() {
		if !s.sink.HasAttachment(a.Hash) {
			return fmt.Errorf("attachment %s: %w; attach the bytes first", plain.Name(a.Hash), ErrNotFound)
		}
	}
	return nil
}

// Repair is [Log.Repair]; what it appends is written like that of Append.
func (s *Session) Repair() ([]Event, error) {
	events, err := s.Log.Repair()
	if len(events) > 0 {
		s.arm()
	}
	return events, err
}

// arm has the batch written when the window has passed.
func (s *Session) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil && !s.ended {
		s.timer = time.AfterFunc(limits.SessionWindow, s.flushByItself)
	}
}

func (s *Session) flushByItself() {
	s.mu.Lock()
	s.timer = nil
	ended := s.ended
	s.mu.Unlock()
	if ended {
		return
	}
	_ = s.Checkpoint(context.Background()) // ends when the store's write does; Err tells
}

// Checkpoint returns when everything that was appended before the call is
// durable. It writes one batch, or none if there is nothing new. Make one before
// every action that the log must know of whatever happens: each request to a
// model, each body of a tool that the model called, the end of a turn.
//
// After an error nothing is lost: the events are in memory, and the next
// Checkpoint tries again. What the caller was about to do must not happen.
//
// ctx bounds the wait for a batch that is being written, and nothing else: a
// checkpoint that does not have to wait is made after a cancellation too.
func (s *Session) Checkpoint(ctx context.Context) error {
	if err := s.lockFlush(ctx); err != nil {
		return fmt.Errorf("checkpoint session %s: %w", s.meta.ID, err)
	}
	defer func() { <-s.flushing }()
	err := s.flush()
	if err != nil {
		err = fmt.Errorf("checkpoint session %s: %w", s.meta.ID, err)
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	return err
}

// lockFlush takes the token, at once if it is there.
func (s *Session) lockFlush(ctx context.Context) error {
	select {
	case s.flushing <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.flushing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush writes what is new. The caller has the token.
func (s *Session) flush() error {
	batch := s.tail(s.written)
	if len(batch) == 0 {
		return nil
	}
	if s.isEnded() {
		return ErrClosed
	}
	if err := s.sink.Write(batch); err != nil {
		return err
	}
	s.written += int64(len(batch))
	s.mu.Lock()
	s.durable = s.written
	s.tell()
	s.mu.Unlock()
	return nil
}

// tell wakes those who follow. Called with mu held.
func (s *Session) tell() {
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
}

// FollowWritten is [Log.Follow] of what is durable: an event that it has yielded is
// in the store, whatever happens to the process. It ends when the session is closed,
// and leaves out what could not be written.
func (s *Session) FollowWritten(ctx context.Context, from int64) iter.Seq[Event] {
	return follow(ctx, from, func(from int64) ([]Event, <-chan struct{}) {
		durable, more := s.writtenAfter(from)
		if durable > from {
			return s.tail(from)[:durable-from], nil
		}
		return nil, more
	})
}

// writtenAfter is how many events are durable and, where an event is the next to be,
// what is closed when that changes; nil if it will not.
func (s *Session) writtenAfter(event int64) (durable int64, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.durable > event || s.ended {
		return s.durable, nil
	}
	if s.more == nil {
		s.more = make(chan struct{})
	}
	return s.durable, s.more
}

func (s *Session) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Err returns why the last batch, of a Checkpoint or by itself, was not written;
// nil if it was.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Attach keeps bytes beside the log, durably, and returns how a message names
// them. The same bytes are kept once. The bytes and their number are bounded
// (ErrFull); mediaType is what the adapter tells the model, such as image/png.
func (s *Session) Attach(mediaType, name string, data []byte) (message.Attachment, error) {
	if len(data) > limits.SessionAttachment {
		return message.Attachment{}, fmt.Errorf("attach to session %s: %w: an attachment has at most %d bytes, this one has %d",
			s.meta.ID, ErrFull, limits.SessionAttachment, len(data))
	}
	if s.isEnded() {
		return message.Attachment{}, fmt.Errorf("attach to session %s: %w", s.meta.ID, ErrClosed)
	}
	sum := sha256.Sum256(data)
	a := message.Attachment{Hash: hex.EncodeToString(sum[:]), MediaType: mediaType, Size: int64(len(data)), Name: name}
	if err := s.sink.PutAttachment(a.Hash, data); err != nil {
		return message.Attachment{}, fmt.Errorf("attach to session %s: %w", s.meta.ID, err)
	}
	return a, nil
}

// Attachment returns the bytes of an attachment, checked against their hash:
// ErrNotFound, ErrCorrupt.
func (s *Session) Attachment(hash string) ([]byte, error) {
	data, err := s.sink.Attachment(hash)
	if err == nil {
		err = CheckAttachment(hash, data)
	}
	if err != nil {
		return nil, fmt.Errorf("read attachment %s of session %s: %w", plain.Name(hash), s.meta.ID, err)
	}
	return data, nil
}

// CheckAttachment is for stores: it says whether bytes are what a hash names.
func CheckAttachment(hash string, data []byte) error {
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return fmt.Errorf("%w: the bytes have another hash than %s", ErrCorrupt, plain.Name(hash))
	}
	return nil
}

// Close writes what is not durable yet, ends the log, and gives the session free.
// An error says what could not be written; the session is closed all the same,
// unless ctx ended first, while another batch was being written: then Close may
// be called again. A second Close does nothing.
func (s *Session) Close(ctx context.Context) error {
	if err := s.lockFlush(ctx); err != nil {
		return fmt.Errorf("close session %s: %w", s.meta.ID, err)
	}
	defer func() { <-s.flushing }()
	if s.isEnded() {
		return nil
	}
	s.Log.Close()
	err := s.flush()
	s.mu.Lock()
	s.ended = true
	s.tell()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.mu.Unlock()
	if err = errors.Join(err, s.sink.Close()); err != nil {
		return fmt.Errorf("close session %s: %w", s.meta.ID, err)
	}
	return nil
}
