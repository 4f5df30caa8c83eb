package sessiontest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// A Kind is one implementation under test.
type Kind struct {
	// New returns an empty store.
	New func(t *testing.T) session.Store
	// Again returns the same sessions as another process would see them; nil: the
	// store itself.
	Again func(t *testing.T, store session.Store) session.Store
	// Crash drops the writer of a session as the death of its process would.
	Crash func(t *testing.T, store session.Store, s *session.Session)
}

// suite is one run of the tests over a new store.
type suite struct {
	*testing.T
	kind  Kind
	store session.Store
	ctx   context.Context
}

// Run tests an implementation.
func Run(t *testing.T, kind Kind) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"create-append-read", (*suite).createAppendRead},
		{"in-use", (*suite).inUse},
		{"create-refuses", (*suite).createRefuses},
		{"nothing-appended-leaves-nothing", (*suite).nothingLeft},
		{"one-writer", (*suite).oneWriter},
		{"resume-keeps-every-byte", (*suite).resume},
		{"repair", (*suite).repair},
		{"crash-keeps-checkpoints", (*suite).crash},
		{"written-by-itself", (*suite).window},
		{"concurrent-appends-and-checkpoints", (*suite).concurrent},
		{"fork", (*suite).fork},
		{"fork-refuses", (*suite).forkRefuses},
		{"fork-of-a-session-in-use", (*suite).forkLive},
		{"attachments", (*suite).attachments},
		{"export", (*suite).export},
		{"list", (*suite).list},
		{"rename", (*suite).rename},
		{"delete", (*suite).delete},
		{"closed", (*suite).closed},
		{"unknown-types-are-carried", (*suite).unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			c.test(&suite{t, kind, kind.New(t), ctx})
		})
	}
}

func (s *suite) again() session.Store {
	if s.kind.Again == nil {
		return s.store
	}
	return s.kind.Again(s.T, s.store)
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got error %v, want %v", err, want)
	}
}

func (s *suite) create(id string) *session.Session {
	s.Helper()
	opened, err := s.store.Create(s.ctx, session.Meta{ID: id, Cwd: "/home/someone"})
	s.ok(err)
	return opened
}

func (s *suite) open(id string) *session.Session {
	s.Helper()
	opened, err := s.again().Open(s.ctx, id)
	s.ok(err)
	return opened
}

func (s *suite) append(w *session.Session, payloads ...session.Payload) {
	s.Helper()
	_, err := w.Append(payloads...)
	s.ok(err)
}

func (s *suite) close(w *session.Session) {
	s.Helper()
	s.ok(w.Close(s.ctx))
}

// read returns the lines of a session as another process sees them.
func (s *suite) read(id string) []string {
	s.Helper()
	l, err := s.again().Read(s.ctx, id)
	s.ok(err)
	return Lines(l.Events(0))
}

func (s *suite) same(got, want any) {
	s.Helper()
	if d := cmp.Diff(want, got); d != "" {
		s.Fatalf("want (-), got (+):\n%s", d)
	}
}

func (s *suite) createAppendRead() {
	w := s.create("one")
	events, err := w.Append(Turn(1)...)
	s.ok(err)
	s.ok(w.Checkpoint(s.ctx))
	s.same(s.read("one"), Lines(events))
	l, err := s.again().Read(s.ctx, "one")
	s.ok(err)
	s.same(l.Meta(), w.Meta())
	if w.Meta().CreatedAt == 0 {
		s.Error("createdAt was not set")
	}
	_, err = l.Append(session.TurnStart{Turn: 2})
	s.is(err, session.ErrClosed)
	s.close(w)
}

// inUse: the view of a session that goes on invents no end of its turn.
func (s *suite) inUse() {
	w := s.create("one")
	events, err := w.Append(Turn(1)[:3]...)
	s.ok(err)
	s.ok(w.Checkpoint(s.ctx))
	s.same(s.read("one"), Lines(events))
	list, err := s.again().List(s.ctx, session.Filter{})
	s.ok(err)
	if len(list) != 1 || list[0].Err != nil || list[0].Holder == nil || list[0].Holder.PID != os.Getpid() {
		s.Errorf("%+v", list)
	}
	_, err = s.again().Fork(s.ctx, "one", -1, "two")
	s.ok(err)
	forked, err := s.again().Read(s.ctx, "two")
	s.ok(err)
	if forked.Turn().TurnOpen || forked.Len() <= w.Len() {
		s.Error("the turn of the fork was not ended")
	}
	s.close(w)
	l, err := s.again().Read(s.ctx, "one")
	s.ok(err)
	if l.Turn().TurnOpen {
		s.Error("the turn is open")
	}
	list, err = s.again().List(s.ctx, session.Filter{})
	s.ok(err)
	for _, sum := range list {
		if sum.Holder != nil {
			s.Errorf("%s is held by %v", sum.Meta.ID, sum.Holder)
		}
	}
}

func (s *suite) createRefuses() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	_, err := s.store.Create(s.ctx, session.Meta{ID: "one"})
	s.is(err, session.ErrExists)
	s.close(w)
	_, err = s.again().Create(s.ctx, session.Meta{ID: "one"})
	s.is(err, session.ErrExists)
	for _, id := range []string{"", ".", "..", "a/b", "-a", ".a", "a b", "é", strings.Repeat("a", 65), "a\n"} {
		_, err := s.store.Create(s.ctx, session.Meta{ID: id})
		s.is(err, session.ErrID)
		_, err = s.store.Open(s.ctx, id)
		s.is(err, session.ErrID)
		_, err = s.store.Read(s.ctx, id)
		s.is(err, session.ErrID)
		s.is(s.store.Delete(s.ctx, id), session.ErrID)
		_, err = s.store.Fork(s.ctx, "one", -1, id)
		s.is(err, session.ErrID)
	}
	if _, err := s.store.Create(s.ctx, session.Meta{ID: "two", Cwd: "relative"}); err == nil {
		s.Error("a relative cwd was taken")
	}
	_, err = s.store.Open(s.ctx, "three")
	s.is(err, session.ErrNotFound)
	s.close(s.create(strings.Repeat("a", 64)))
}

func (s *suite) nothingLeft() {
	s.close(s.create("empty"))
	_, err := s.again().Read(s.ctx, "empty")
	s.is(err, session.ErrNotFound)
	list, err := s.again().List(s.ctx, session.Filter{})
	s.ok(err)
	s.same(len(list), 0)
	s.close(s.create("empty"))
}

func (s *suite) oneWriter() {
	before := time.Now().Add(-time.Second)
	w := s.create("one")
	s.append(w, Turn(1)...)
	_, err := s.again().Open(s.ctx, "one")
	var held *session.LockedError
	if !errors.As(err, &held) || held.PID == 0 || held.Since.Before(before) || held.ID != "one" {
		s.Fatalf("got %v (%+v), want who has it and since when", err, held)
	}
	s.is(s.again().Delete(s.ctx, "one"), session.ErrLocked)
	s.is(session.Rename(s.ctx, s.again(), "one", "x"), session.ErrLocked)
	s.close(w)
	s.close(s.open("one"))
}

func (s *suite) resume() {
	w := s.create("one")
	odd := Turn(1)
	for i, p := range odd {
		if u, ok := p.(session.UserMessage); ok {
			u.Message.Content = []message.Block{message.Plain("<&> \u2028 \xff \xed\xa0\xbd end")}
			odd[i] = u
		}
	}
	s.append(w, odd...)
	want, err := w.Request()
	s.ok(err)
	lines := Lines(w.Events(0))
	s.close(w)
	for life := 1; life <= 3; life++ {
		w = s.open("one")
		got, err := w.Request()
		s.ok(err)
		s.same(fmt.Sprintf("%#v", got.Messages), fmt.Sprintf("%#v", want.Messages))
		s.same(Lines(w.Events(0))[:len(lines)], lines)
		if w.FirstLive() != w.Len() {
			s.Fatalf("first live %d, length %d", w.FirstLive(), w.Len())
		}
		s.same(w.Turn().Turn, life)
		s.append(w, Turn(life + 1)[:2]...)
		s.append(w, session.StepEnd{Turn: life + 1, Step: 1}, session.TurnEnd{Turn: life + 1, Reason: session.EndReason{Kind: session.EndBlocked}})
		lines = Lines(w.Events(0))
		s.close(w)
		s.same(s.read("one"), lines)
	}
}

// results counts the results of each call on the surface, and the error codes.
func results(l *session.Log) (counts map[string]int, codes map[string]string, err error) {
	counts, codes = map[string]int{}, map[string]string{}
	for _, e := range l.Events(0) {
		p, err := e.Payload()
		if err != nil {
			return nil, nil, err
		}
		if r, ok := p.(session.Result); ok {
			id := r.Message.Source.CallID
			counts[id]++
			if r.Error != nil {
				codes[id] = r.Error.Code
			}
		}
	}
	return counts, codes, nil
}

func (s *suite) repair() {
	w := s.create("one")
	s.append(w, Open(1, "c1", "c2", "c3")...)
	for _, id := range []string{"c1", "c2"} {
		s.append(w, Call(1, 1, CallBlock(id, "echo", `{"text":"`+id+`"}`)))
	}
	s.append(w, Result(1, 1, "c1", "said"))
	s.close(w)
	l, err := s.again().Read(s.ctx, "one")
	s.ok(err)
	read := Lines(l.Events(0))
	w = s.open("one")
	s.same(Lines(w.Events(0))[:len(read)], read)
	counts, codes, err := results(w.Log)
	s.ok(err)
	s.same(counts, map[string]int{"c1": 1, "c2": 1, "c3": 1})
	s.same(codes, map[string]string{"c2": session.CodeUnknown, "c3": session.CodeNotStarted})
	if turn := w.Turn(); turn.TurnOpen || turn.StepOpen {
		s.Fatalf("still open: %+v", turn)
	}
	if s.kind.Crash != nil { // the repair is durable before anybody asks
		s.kind.Crash(s.T, s.store, w)
		s.same(s.read("one"), read)
		return
	}
	s.close(w)
}

func (s *suite) crash() {
	if s.kind.Crash == nil {
		s.Skip("the store cannot crash")
	}
	w := s.create("one")
	s.append(w, Open(1, "c1")...)
	s.ok(w.Checkpoint(s.ctx))
	lines := Lines(w.Events(0))
	s.kind.Crash(s.T, s.store, w)
	w = s.open("one")
	got := Lines(w.Events(0))
	s.same(got[:len(lines)], lines)
	counts, codes, err := results(w.Log)
	s.ok(err)
	s.same(counts, map[string]int{"c1": 1})
	s.same(codes, map[string]string{"c1": session.CodeNotStarted})
	s.close(w)
}

func (s *suite) window() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	lines := Lines(w.Events(0))
	deadline := time.Now().Add(20 * time.Second)
	for len(s.read("one")) < len(lines) { // what another process sees cannot be waited for otherwise
		if time.Now().After(deadline) {
			s.Fatal("the batch was not written by itself")
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.ok(w.Err())
	s.same(s.read("one"), lines)
	s.close(w)
}

func (s *suite) concurrent() {
	w := s.create("one")
	var wg sync.WaitGroup
	const each = 50
	for g := range 4 {
		wg.Go(func() {
			for i := range each {
				_, err := w.Append(session.Todo{Todos: []session.TodoItem{{Content: fmt.Sprintf("%d-%d", g, i), Status: "pending"}}})
				if err == nil && i%10 == 0 {
					err = w.Checkpoint(s.ctx)
				}
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.close(w)
	l, err := s.again().Read(s.ctx, "one")
	s.ok(err)
	next := map[byte]int{}
	for _, e := range l.Events(0) {
		p, err := e.Payload()
		s.ok(err)
		content := p.(session.Todo).Todos[0].Content
		if want := fmt.Sprintf("%c-%d", content[0], next[content[0]]); content != want {
			s.Fatalf("got %s, want %s", content, want)
		}
		next[content[0]]++
	}
	s.same(l.Len(), int64(4*each))
}

func (s *suite) unknown() {
	w := s.create("one")
	e, err := session.ParseEvent(`{"type":"newer/thing","seq":0,"time":1,"data":{"b":1.50,"a":[1e3]}}`)
	s.ok(err)
	p, err := e.Payload()
	s.ok(err)
	s.append(w, p)
	s.close(w)
	l, err := s.again().Read(s.ctx, "one")
	s.ok(err)
	s.same(l.Events(0)[0].Data(), `{"b":1.50,"a":[1e3]}`)
	var out bytes.Buffer
	s.ok(s.again().Export(s.ctx, "one", &out))
	if !strings.Contains(out.String(), `"data":{"b":1.50,"a":[1e3]}`) {
		s.Errorf("export: %s", out.String())
	}
}
