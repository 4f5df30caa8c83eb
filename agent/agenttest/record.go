package agenttest

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/google/go-cmp/cmp"
)

// Sent is one request that a model was sent.
type Sent struct {
	Session string
	Len     int64 // events in the session's log when it was sent
	Purpose string
	Body    []byte // what the adapter's Encode gave for it

	adapter llm.Adapter
}

// A Recorder records what adapters are sent. It may be used from any goroutine.
type Recorder struct {
	mu       sync.Mutex
	sessions map[string]*session.Session
	sent     []Sent
}

func newRecorder() *Recorder { return &Recorder{sessions: map[string]*session.Session{}} }

// Watch makes a session known, by its id. A later one of the same id, such as the
// same session opened again, takes its place.
func (r *Recorder) Watch(s *session.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[s.Meta().ID] = s
}

// Adapter returns an adapter that records the requests it passes to another.
func (r *Recorder) Adapter(a llm.Adapter) llm.Adapter { return &recording{a, r} }

// Sent returns what was sent in a session so far.
func (r *Recorder) Sent(id string) []Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Sent
	for _, s := range r.sent {
		if s.Session == id {
			out = append(out, s)
		}
	}
	return out
}

// Check calls Rebuild for all sessions.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	sessions := make([]*session.Session, 0, len(r.sessions))
	for _, s := range r.sessions {
		sessions = append(sessions, s)
	}
	r.mu.Unlock()
	for _, s := range sessions {
		Rebuild(t, s, r.Sent(s.Meta().ID))
	}
}

type recording struct {
	llm.Adapter
	r *Recorder
}

func (a *recording) Stream(ctx context.Context, q *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		body, err := a.Encode(q)
		if err == nil {
			a.r.note(Sent{Session: q.Session, Purpose: q.Purpose, Body: slices.Clone(body), adapter: a.Adapter})
		}
		a.Adapter.Stream(ctx, q)(yield)
	}
}

func (r *Recorder) note(s Sent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.sessions[s.Session]; known != nil {
		s.Len = known.Len()
	}
	r.sent = append(r.sent, s)
}

// Rebuild fails the test where a body that was sent is not, byte for byte, the one
// that the session's log alone gives: of a step by session.Log.RequestAt and
// agent.RequestOf, of a one-shot request by its llm/call.
func Rebuild(t testing.TB, s *session.Session, sent []Sent) {
	t.Helper()
	for i, one := range sent {
		bodies, err := one.rebuilt(s)
		if err != nil {
			t.Errorf("request %d of session %s, at event %d: %v", i, one.Session, one.Len, err)
			continue
		}
		if !slices.ContainsFunc(bodies, func(b []byte) bool { return bytes.Equal(b, one.Body) }) {
			closest := ""
			if len(bodies) > 0 {
				closest = string(bodies[0])
			}
			t.Errorf("request %d of session %s, at event %d, is not what its log says (-log +sent):\n%s",
				i, one.Session, one.Len, cmp.Diff(closest, string(one.Body)))
		}
	}
}

// rebuilt returns the bodies that a request may have by the log.
func (one Sent) rebuilt(s *session.Session) ([][]byte, error) {
	var requests []llm.Request
	if one.Purpose == "" {
		r, err := s.RequestAt(one.Len)
		if err != nil {
			return nil, err
		}
		q, err := agent.RequestOf(r, one.Session)
		if err != nil {
			return nil, err
		}
		requests = append(requests, q)
	}
	if one.Purpose != "" {
		for _, e := range s.Events(one.Len) {
			if e.Type != session.TypeLLMCall {
				continue
			}
			p, err := e.Payload()
			if err != nil {
				return nil, err
			}
			q, err := agent.OneShotOf(p.(session.LLMCall), one.Session)
			if err != nil {
				return nil, err
			}
			if q.Purpose == one.Purpose {
				requests = append(requests, q)
			}
		}
	}
	var bodies [][]byte
	for _, q := range requests {
		q.Attachment = s.Attachment
		body, err := one.adapter.Encode(&q)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}
