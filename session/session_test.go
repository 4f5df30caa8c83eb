package session_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/session/sessiontest"
)

func created(t *testing.T, store session.Store) *session.Session {
	t.Helper()
	w, err := store.Create(t.Context(), session.Meta{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var errDisk = errors.New("the disk is full")

// TestFailedCheckpoint: nothing is lost, and the next one writes all of it.
func TestFailedCheckpoint(t *testing.T) {
	store := memory.New()
	w := created(t, store)
	appended(t, w.Log, sessiontest.Turn(1)...) // through the log, so that no timer runs
	store.Fail(errDisk)
	for range 2 {
		if err := w.Checkpoint(t.Context()); !errors.Is(err, errDisk) || !errors.Is(w.Err(), errDisk) {
			t.Fatal(err, w.Err())
		}
	}
	store.Fail(nil)
	appended(t, w.Log, sessiontest.Turn(2)...)
	if err := w.Checkpoint(t.Context()); err != nil || w.Err() != nil || store.Writes() != 1 {
		t.Fatal(err, w.Err(), store.Writes())
	}
	l, err := store.Read(t.Context(), "s")
	if err != nil || l.Len() != w.Len() {
		t.Fatal(l, err)
	}
	store.Fail(errDisk)
	appended(t, w.Log, session.Todo{})
	if err := w.Close(t.Context()); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if w, err = store.Open(t.Context(), "s"); err != nil { // closed all the same
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
}

// TestWindow: what nobody checkpoints is written once for each window.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		w := created(t, store)
		for turn := 1; turn <= 5; turn++ {
			if _, err := w.Append(sessiontest.Turn(turn)...); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(limits.SessionWindow - time.Millisecond)
		synctest.Wait()
		if n := store.Writes(); n != 0 {
			t.Fatalf("%d writes before the window had passed", n)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := store.Writes(); n != 1 {
			t.Fatalf("%d writes, want 1", n)
		}
		time.Sleep(10 * limits.SessionWindow)
		synctest.Wait()
		if n := store.Writes(); n != 1 {
			t.Fatalf("%d writes with nothing new", n)
		}
		store.Fail(errDisk)
		if _, err := w.Append(session.Todo{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * limits.SessionWindow)
		synctest.Wait()
		if !errors.Is(w.Err(), errDisk) {
			t.Fatal(w.Err())
		}
		store.Fail(nil)
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// slowSink writes when it is told to.
type slowSink struct {
	session.Sink
	begun, release chan struct{}
	mu             sync.Mutex
	batches        []int
}

func (s *slowSink) Write(events []session.Event) error {
	s.begun <- struct{}{}
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, len(events))
	return nil
}

func (*slowSink) Close() error { return nil }

// TestSharedCheckpoint: while a batch is written, appends go on, waiting is bound
// by the context, and all that wait share the next batch.
func TestSharedCheckpoint(t *testing.T) {
	l := newLog(t)
	sink := &slowSink{begun: make(chan struct{}), release: make(chan struct{})}
	w := session.NewSession(l, sink, 0)
	appended(t, l, session.Todo{})
	var wg sync.WaitGroup
	checkpoint := func() {
		if err := w.Checkpoint(context.Background()); err != nil {
			t.Error(err)
		}
	}
	wg.Go(checkpoint)
	<-sink.begun
	appended(t, l, session.Todo{}, session.Todo{}) // is not held up
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Checkpoint(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := w.Close(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 5 {
		wg.Go(checkpoint)
	}
	sink.release <- struct{}{}
	<-sink.begun
	sink.release <- struct{}{}
	wg.Wait()
	if err := w.Checkpoint(ended); err != nil { // nothing to wait for
		t.Error(err)
	}
	if len(sink.batches) != 2 || sink.batches[0] != 1 || sink.batches[1] != 2 {
		t.Errorf("batches %v", sink.batches)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestLimits(t *testing.T) {
	l := newLog(t)
	if _, err := l.Append(make([]session.Payload, limits.SessionBatch+1)...); !errors.Is(err, session.ErrInvariant) {
		t.Error(err)
	}
	big := strings.Repeat("x", limits.SessionEvent)
	huge := session.Raw{Type: "x/y", Data: lossless.Obj(lossless.M("text", lossless.Str(big)))}
	if _, err := l.Append(huge); !errors.Is(err, session.ErrInvariant) || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%.200v", err)
	}
	full := newLog(t, sessiontest.Open(1, "c1")...)
	full.SetLimit(4000)
	var err error
	for err == nil {
		_, err = full.Append(sessiontest.Chunk(1, 1, "x"))
	}
	if !errors.Is(err, session.ErrFull) || !strings.Contains(err.Error(), "new session") {
		t.Error(err)
	}
	if _, err := full.Repair(); err != nil { // it can still be ended
		t.Error(err)
	}
	for range limits.SessionObservers {
		if _, err := l.Observe(0, func(session.Event) {}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Observe(0, func(session.Event) {}); !errors.Is(err, session.ErrFull) {
		t.Error(err)
	}
	l.Close()
}

func TestHeader(t *testing.T) {
	for _, m := range []session.Meta{
		{ID: "a"},
		{ID: "a.b_c-D9", CreatedAt: 1790000000000, Cwd: "/x y/\"z\"", ParentSession: "p", SeedLength: 7, Origin: "subagent", DelegationDepth: 2, AgentPreset: "reviewer"},
	} {
		got, err := session.ParseHeader(m.Line())
		if err != nil || got != m {
			t.Errorf("%+v became %+v (%v)", m, got, err)
		}
	}
	for _, c := range []struct {
		line string
		is   error
	}{
		{`{"type":"session","version":2,"id":"a","delegationDepth":0,"new":1}`, session.ErrNewer},
		{`{"type":"session","version":0,"id":"a"}`, session.ErrCorrupt},
		{`{"type":"session","version":"1","id":"a"}`, session.ErrCorrupt},
		{`{"type":"session","version":1,"id":"../a"}`, session.ErrCorrupt},
		{`{"type":"session","version":1,"id":"a","createdAt":-1}`, session.ErrCorrupt},
		{`{"type":"session","version":1,"id":"a","other":1}`, session.ErrCorrupt},
		{`{"type":"session","version":1,"id":1}`, session.ErrCorrupt},
		{`{"type":"event"}`, session.ErrCorrupt},
		{`[]`, session.ErrCorrupt},
		{strings.Repeat("x", 100_000), session.ErrCorrupt},
	} {
		if _, err := session.ParseHeader(c.line); !errors.Is(err, c.is) {
			t.Errorf("%.80s: %v, want %v", c.line, err, c.is)
		}
	}
}

// TestManyCalls: an answer with 200 calls, all of which wait at a time.
func TestManyCalls(t *testing.T) {
	l := newLog(t, session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1}, sessiontest.User("u", "x"))
	a := sessiontest.Answer(1, 1, "a", "x")
	for i := range 200 {
		a.Message.Content = append(a.Message.Content, sessiontest.CallBlock(strings.Repeat("c", i+1), "echo", "{}"))
	}
	appended(t, l, a)
	calls := l.Unanswered()
	for _, c := range calls {
		appended(t, l, session.Call{Turn: 1, Step: 1, CallID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	for _, c := range calls {
		appended(t, l, sessiontest.Result(1, 1, c.ID, "x"))
	}
	appended(t, l, session.StepEnd{Turn: 1, Step: 1}, end(1))
	if len(calls) != 200 || len(l.Surface()) != 202 {
		t.Error(len(calls), len(l.Surface()))
	}
}

// TestFollowWritten: whoever follows what is written sees no event before it is
// durable, each once, and at the end what Close wrote.
func TestFollowWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		w := created(t, store)
		var seen []int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e := range w.FollowWritten(t.Context(), 1) {
				seen = append(seen, e.Seq)
			}
		}()
		appended(t, w.Log, sessiontest.Turn(1)...) // no timer runs
		turn := int(w.Len())
		expect := func(n int, when string) {
			t.Helper()
			synctest.Wait()
			if len(seen) != max(0, n-1) || n > 1 && (seen[0] != 1 || seen[len(seen)-1] != int64(n-1)) {
				t.Fatalf("%s: %d events in all, seen %v", when, n, seen)
			}
		}
		expect(0, "before a checkpoint")
		store.Fail(errDisk)
		if err := w.Checkpoint(t.Context()); err == nil {
			t.Fatal("no error")
		}
		expect(0, "after one that failed")
		store.Fail(nil)
		if err := w.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(turn, "after one")
		appended(t, w.Log, sessiontest.Turn(2)...)
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-done
		expect(int(w.Len()), "after the end")
		for range w.FollowWritten(t.Context(), w.Len()) {
			t.Fatal("an event of a closed session that was not written")
		}
	})
}
