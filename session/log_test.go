package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLog(t testing.TB, payloads ...session.Payload) *session.Log {
	t.Helper()
	l, err := session.NewLog(session.Meta{ID: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	appended(t, l, payloads...)
	return l
}

func appended(t testing.TB, l *session.Log, payloads ...session.Payload) []session.Event {
	t.Helper()
	events, err := l.Append(payloads...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func end(turn int) session.TurnEnd {
	return session.TurnEnd{Turn: turn, Reason: session.EndReason{Kind: session.EndCompleted}}
}

func with(r session.Result, code string) session.Result {
	r.Error = &session.ResultError{Name: "Error", Code: code}
	return r
}

func inserted(target session.Target, start, removed int, ids ...string) session.InboxSplice {
	p := session.InboxSplice{Target: target, Start: start, RemovedCount: removed}
	for _, id := range ids {
		p.Inserted = append(p.Inserted, sessiontest.User(id, id).Message)
	}
	return p
}

func op(u session.UserMessage, o session.Op, sources ...int64) session.UserMessage {
	u.Op, u.Sources = o, sources
	return u
}

// TestInvariants: what a log refuses, after the payloads that come before it.
func TestInvariants(t *testing.T) {
	type ps = []session.Payload
	block := sessiontest.CallBlock
	c1, c2 := block("c1", "echo", `{"text":"c1"}`), block("c2", "echo", `{"text":"c2"}`)
	user, call, result := sessiontest.User, sessiontest.Call, sessiontest.Result
	turn := session.TurnStart{Turn: 1}
	step := session.StepStart{Turn: 1, Step: 1}
	raw := func(kind session.Type, data string) session.Raw {
		v, err := lossless.Parse([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return session.Raw{Type: kind, Data: v}
	}
	header := sessiontest.Header
	whole := sessiontest.Turn(1) // 0 turn 1 step 2 user 3 header 4,5 chunks 6 answer 7 call 8 result 9 call 10 result 11,12 ends
	for _, c := range []struct {
		name   string
		before ps
		p      session.Payload
		want   string
	}{
		{"turn-number", nil, session.TurnStart{Turn: 2}, "the next turn is 1"},
		{"turn-zero", nil, session.TurnStart{}, "turn is 0"},
		{"turn-open", ps{turn}, session.TurnStart{Turn: 2}, "turn 1 is open"},
		{"end-without-turn", nil, end(1), "no turn is open"},
		{"end-of-another-turn", ps{turn}, end(2), "the open turn is 1"},
		{"end-with-open-step", ps{turn, step}, end(1), "step 1 of turn 1 is open"},
		{"step-without-turn", nil, step, "no turn is open"},
		{"step-number", ps{turn}, session.StepStart{Turn: 1, Step: 2}, "the next step of turn 1 is 1"},
		{"step-open", ps{turn, step}, session.StepStart{Turn: 1, Step: 2}, "step 1 of turn 1 is open"},
		{"step-end-without-step", ps{turn}, session.StepEnd{Turn: 1, Step: 1}, "no step is open"},
		{"chunk-outside", ps{turn}, sessiontest.Chunk(1, 1, "x"), "no step is open"},
		{"chunk-of-another-step", ps{turn, step}, sessiontest.Chunk(1, 2, "x"), "it is of step 2"},
		{"answer-outside", nil, sessiontest.Answer(1, 1, "a", "x"), "no step is open"},
		{"second-answer", ps{turn, step, sessiontest.Answer(1, 1, "a", "x")}, sessiontest.Answer(1, 1, "b", "x"), "has its answer"},
		{"two-calls-one-id", ps{turn, step}, sessiontest.Answer(1, 1, "a", "x", c1, c1), `two calls have the id "c1"`},
		{"call-without-answer", ps{turn, step}, call(1, 1, c1), "has 0 calls"},
		{"call-out-of-order", sessiontest.Open(1, "c1", "c2"), call(1, 1, c2), `the next call of the answer is "c1"`},
		{"call-other-arguments", sessiontest.Open(1, "c1"), call(1, 1, block("c1", "echo", `{"text": "c1"}`)), "other arguments"},
		{"call-twice", append(sessiontest.Open(1, "c1"), call(1, 1, c1)), call(1, 1, c1), "all were made"},
		{"result-without-call", sessiontest.Open(1, "c1"), result(1, 1, "c1", "x"), "has no tool/call"},
		{"result-of-nothing", ps{turn, step}, result(1, 1, "c1", "x"), "no call of the step waits"},
		{"result-twice", append(sessiontest.Open(1, "c1"), call(1, 1, c1), result(1, 1, "c1", "x")), result(1, 1, "c1", "x"), "no call of the step waits"},
		{"result-out-of-order", append(sessiontest.Open(1, "c1", "c2"), call(1, 1, c1), call(1, 1, c2)), result(1, 1, "c2", "x"), `that of call "c1"`},
		{"call-after-not-started", append(sessiontest.Open(1, "c1"), with(result(1, 1, "c1", "x"), session.CodeNotStarted)), call(1, 1, c1), "all were made"},
		{"step-end-owes-results", sessiontest.Open(1, "c1"), session.StepEnd{Turn: 1, Step: 1}, `1 of 1 calls have no result, the first is "c1"`},
		{"user-between", sessiontest.Open(1, "c1"), user("u", "x"), "nothing comes between"},
		{"user-empty", nil, session.UserMessage{Message: message.Message{ID: "u", Role: message.User, Source: message.Source{Kind: "user"}}}, "content is empty"},
		{"user-role", nil, session.UserMessage{Message: message.Message{ID: "u", Role: message.Assistant, Source: message.Source{Kind: "user"}, Content: []message.Block{message.Plain("x")}}}, "role"},
		{"user-result", nil, session.UserMessage{Message: message.Result("r", "c", false)}, "tool-result"},
		{"message-without-id", nil, user("", "x"), "no id"},
		{"image-without-hash", nil, session.UserMessage{Message: message.Message{ID: "u", Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{{Type: message.ImageBlock}}}}, "sha256"},

		{"replace-not-there", whole, op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 99, End: 99}, 2), "99 is not on the surface"},
		{"replace-a-chunk", whole, op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 4, End: 4}, 4), "4 is not on the surface"},
		{"replace-backwards", whole, op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 6, End: 2}, 2, 6), "start comes first"},
		{"replace-uncited", whole, op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 2, End: 10}, 2, 6, 8), "does not name event 10"},
		{"replace-parts-calls", whole, op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 2, End: 8}, 2, 6, 8), "before event 10"},
		{"replace-answer-alone", whole, op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 6, End: 6}, 6), "before event 8"},
		{"replace-results-alone", whole, op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 8, End: 10}, 8, 10), "begins with event 8"},
		{"replace-open-calls", sessiontest.Open(1, "c1"), op(user("s", "sum"), session.Op{Kind: session.Replace, Start: 2, End: 6}, 2, 6), "calls without a result"},
		{"insert-between", whole, op(user("s", "x"), session.Op{Kind: session.Insert, Start: 8}), "stays behind"},
		{"sources-future", whole, op(user("s", "x"), session.Op{}, 14), "not before it"},
		{"sources-twice", whole, op(user("s", "x"), session.Op{}, 1, 1), "twice"},
		{"sources-empty", whole, op(user("s", "x"), session.Op{}, []int64{}...), "leave it out"},

		{"header-not-first", nil, header(session.HeaderChange, "a"), "no header yet"},
		{"header-initial-twice", ps{header(session.HeaderInitial, "a")}, header(session.HeaderInitial, "b"), "initial is for the first"},
		{"header-unchanged", ps{header(session.HeaderInitial, "a")}, header(session.HeaderChange, "a"), "when it changes"},
		{"header-reason", nil, header("fallback", "a"), `"fallback"`},
		{"header-delta", nil, raw("request/header-delta", "{}"), "not supported"},
		{"header-no-model", nil, session.RequestHeader{Reason: session.HeaderInitial}, "no provider"},

		{"inbox-bounds", nil, inserted(session.NextTurn, 1, 0, "m"), "has 0 messages"},
		{"inbox-removes-too-many", ps{inserted(session.NextTurn, 0, 0, "m")}, inserted(session.NextTurn, 0, 2), "has 1 messages"},
		{"inbox-twice", ps{inserted(session.NextTurn, 0, 0, "m")}, inserted(session.NextStep, 0, 0, "m"), `"m" waits already`},
		{"inbox-target", nil, inserted("later", 0, 0), `"later"`},

		{"title-control", nil, session.Title{Title: "a\nb"}, "one line"},
		{"title-long", nil, session.Title{Title: strings.Repeat("x", 201)}, "at most 200"},
		{"end-seed", nil, session.EndSeed{}, "when a session is opened"},
		{"known-type-raw", nil, raw("turn/start", "{}"), "payload of its own"},
		{"bad-type", nil, raw("a b", "{}"), "a type is a text"},
		{"raw-not-object", nil, raw("x/y", "[]"), "an object"},
		{"nil", nil, nil, "no payload"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLog(t, c.before...)
			before := sessiontest.Lines(l.Events(0))
			events, err := l.Append(session.Todo{}, c.p)
			if !errors.Is(err, session.ErrInvariant) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "payload") && c.name != "end-seed" {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if d := cmp.Diff(before, sessiontest.Lines(l.Events(0))); d != "" || events != nil {
				t.Fatalf("it was changed: %s", d)
			}
			if _, err := l.Append(session.Todo{}); err != nil {
				t.Fatalf("the log is spoilt: %v", err)
			}
		})
	}
}

func texts(t *testing.T, l *session.Log) []string {
	t.Helper()
	var got []string
	for _, n := range l.Surface() {
		b := n.Message.Content[0]
		if b.Type == message.ResultBlock {
			b = b.Content[0]
		}
		got = append(got, fmt.Sprintf("%d %s", n.Seq, b.Text))
	}
	return got
}

func TestSurface(t *testing.T) {
	l := newLog(t, sessiontest.Turn(1)...)
	same := func(want ...string) {
		t.Helper()
		if d := cmp.Diff(want, texts(t, l)); d != "" {
			t.Fatal(d)
		}
	}
	same("2 Do 1.", "6 Well, yes.", "8 said c1", "10 said c2")

	pruned := sessiontest.Result(1, 1, "c1", "(pruned)")
	pruned.Op, pruned.Sources = session.Op{Kind: session.Replace, Start: 8, End: 8}, []int64{8}
	appended(t, l, pruned)
	same("2 Do 1.", "6 Well, yes.", "13 (pruned)", "10 said c2")
	for _, bad := range []func(*session.Result){
		func(r *session.Result) { r.Message.Content[0].IsError = true },
		func(r *session.Result) { r.Message.ID = "other" },
		func(r *session.Result) { r.Error = &session.ResultError{Name: "Error"} },
		func(r *session.Result) { r.Op.End = 10 },
		func(r *session.Result) { r.Op.Start, r.Op.End = 6, 6 },
		func(r *session.Result) { r.Op.Start, r.Op.End = 99, 99 },
	} {
		again := sessiontest.Result(1, 1, "c1", "again")
		again.Op, again.Sources = session.Op{Kind: session.Replace, Start: 13, End: 13}, []int64{13}
		bad(&again)
		if _, err := l.Append(again); !errors.Is(err, session.ErrInvariant) {
			t.Errorf("got %v", err)
		}
	}

	appended(t, l, op(sessiontest.User("i", "before"), session.Op{Kind: session.Insert, Start: 2}))
	same("14 before", "2 Do 1.", "6 Well, yes.", "13 (pruned)", "10 said c2")
	appended(t, l, op(sessiontest.User("s", "summary"), session.Op{Kind: session.Replace, Start: 2, End: 10}, 2, 6, 13, 10))
	same("14 before", "15 summary")
	gone := sessiontest.User("g", "")
	gone.Message.Content = nil
	appended(t, l, op(gone, session.Op{Kind: session.Replace, Start: 14, End: 14}, 14))
	same("15 summary")

	// Every state of the past can be had again.
	for n, want := range map[int64]int{13: 4, 14: 4, 15: 5, 16: 2, 17: 1} {
		r, err := l.RequestAt(n)
		if err != nil || len(r.Messages) != want {
			t.Errorf("at %d: %d messages, %v; want %d", n, len(r.Messages), err, want)
		}
	}
	if _, err := l.RequestAt(99); !errors.Is(err, session.ErrBoundary) {
		t.Error(err)
	}
}

// TestCompactionWithinStep: a request that was too large is made again in its
// step, after results were pruned and older messages replaced.
func TestCompactionWithinStep(t *testing.T) {
	l := newLog(t, sessiontest.Turn(1)...) // the surface is 2, 6, 8, 10
	appended(t, l, session.TurnStart{Turn: 2}, session.StepStart{Turn: 2, Step: 1}, sessiontest.User("p", "Go on."),
		sessiontest.Chunk(2, 1, "of the attempt that failed"))
	replaces := func(u session.UserMessage, sources ...int64) session.UserMessage {
		return op(u, session.Op{Kind: session.Replace, Start: sources[0], End: sources[len(sources)-1]}, sources...)
	}
	pruned := sessiontest.Result(1, 1, "c2", "(pruned)")
	pruned.Op, pruned.Sources = session.Op{Kind: session.Replace, Start: 10, End: 10}, []int64{10}
	at := appended(t, l, pruned)[0].Seq
	summary := appended(t, l, session.CompactStart{ID: "c", Reason: "full"}, replaces(sessiontest.User("s", "summary"), 2, 6, 8, at),
		session.CompactEnd{ID: "c", Outcome: "done", Replaced: 4})[1].Seq
	if d := cmp.Diff([]string{fmt.Sprint(summary, " summary"), "15 Go on."}, texts(t, l)); d != "" {
		t.Fatal(d)
	}
	answer := sessiontest.Answer(2, 1, "a2", "Yes.", sessiontest.CallBlock("d1", "echo", "{}"))
	seq := appended(t, l, answer)[0].Seq
	if _, err := l.Append(replaces(sessiontest.User("t", "again"), summary, 15, seq)); !errors.Is(err, session.ErrInvariant) {
		t.Errorf("an answer whose calls wait was replaced: %v", err)
	}
	appended(t, l, replaces(sessiontest.User("t", "again"), summary, 15))
	if _, err := l.Repair(); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, l); len(got) != 3 {
		t.Errorf("got %q", got)
	}
}

func TestExactArguments(t *testing.T) {
	for _, args := range []string{
		"", "{}", `{"a":1.50, "a":2}`, "not json", "\xff\xfe\x00", "half \xed\xa0\xbd", "\xed\xa0\xbd\xed\xb8\x80", "<script>&\u2028", `{"base64":"eA=="}`, "\ufffd",
	} {
		block := sessiontest.CallBlock("c1", "echo", args)
		l := newLog(t, session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1}, sessiontest.User("u", args+"."),
			sessiontest.Answer(1, 1, "a", args, block), sessiontest.Call(1, 1, block), sessiontest.Result(1, 1, "c1", args))
		l, err := session.NewLog(l.Meta(), l.Events(0)) // from the text alone
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Events(4)[0].Payload()
		if err != nil || string(p.(session.Call).Arguments) != args {
			t.Errorf("%q became %q (%v)", args, p.(session.Call).Arguments, err)
		}
		nodes := l.Surface()
		if got := nodes[1].Message.Content; string(got[0].Text) != args || string(got[1].Arguments) != args {
			t.Errorf("%q became %+v", args, got)
		}
		if got := nodes[2].Message.Content[0].Content[0].Text; string(got) != args {
			t.Errorf("%q became %q", args, got)
		}
	}
}

func TestViews(t *testing.T) {
	l := newLog(t, sessiontest.Open(1, "c1", "c2")...)
	if d := cmp.Diff(session.Turn{Turn: 1, Step: 1, TurnOpen: true, StepOpen: true, Answered: true}, l.Turn()); d != "" {
		t.Error(d)
	}
	appended(t, l, sessiontest.Call(1, 1, sessiontest.CallBlock("c1", "echo", `{"text":"c1"}`)))
	want := []session.Pending{{ID: "c1", Name: "echo", Arguments: `{"text":"c1"}`, Called: true}, {ID: "c2", Name: "echo", Arguments: `{"text":"c2"}`}}
	if d := cmp.Diff(want, l.Unanswered()); d != "" {
		t.Error(d)
	}
	appended(t, l, session.PermissionMode{Mode: "ask"}, session.RequestContext{Provider: "p", Model: "m"}, session.Preset{AgentPreset: "x"}, session.Title{Title: "t"})
	if l.PermissionMode() != "ask" || l.Context().Model != "m" || l.Preset() != "x" || l.Title() != "t" {
		t.Error(l.PermissionMode(), l.Context(), l.Preset(), l.Title())
	}
	appended(t, l, session.RequestContext{Provider: "p", Model: "m", ContextWindow: 1000}, session.RequestContext{Provider: "p", Model: "n"})
	if d := cmp.Diff(session.RequestContext{Provider: "p", Model: "n"}, l.Context()); d != "" {
		t.Errorf("a model whose window is not known has that of the one before: %s", d)
	}
	// What is returned is the caller's.
	a, _ := l.Request()
	a.Messages[0].Content[0].Text = "changed"
	a.Header.Tools[0].Name = "changed"
	nodes := l.Surface()
	nodes[0].Message.Content[0].Text = "changed"
	b, err := l.Request()
	if err != nil || b.Messages[0].Content[0].Text != "Do 1." || b.Header.Tools[0].Name != "echo" {
		t.Errorf("%+v %v", b, err)
	}
	// A payload that changes afterwards changes nothing.
	u := sessiontest.User("u", "x")
	e := appended(t, newLog(t), u)[0]
	u.Message.Content[0].Text = "changed"
	if strings.Contains(e.Line(), "changed") {
		t.Error(e.Line())
	}
}

func TestFollow(t *testing.T) {
	l := newLog(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range l.Follow(ctx, 1) {
			got <- e.Seq
		}
	}()
	appended(t, l, sessiontest.Turn(1)...)
	for want := int64(1); want < l.Len(); want++ {
		if seq := <-got; seq != want {
			t.Fatalf("got %d, want %d", seq, want)
		}
	}
	appended(t, l, session.Todo{})
	<-got
	l.Close()
	<-done
}

// TestFollowAgain: what Follow returns begins anew each time that it is ranged over.
func TestFollowAgain(t *testing.T) {
	s, err := memory.New().Create(t.Context(), session.Meta{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	appended(t, s.Log, sessiontest.Turn(1)...)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, events := range map[string]iter.Seq[session.Event]{"log": s.Follow(t.Context(), 1), "written": s.FollowWritten(t.Context(), 1)} {
		for range 2 {
			if n := len(slices.Collect(events)); n != int(s.Len())-1 {
				t.Errorf("%s: %d events of %d", name, n, s.Len()-1)
			}
		}
	}
}

// TestObservers: slow, panicking and re-entrant ones harm nobody.
func TestObservers(t *testing.T) {
	l := newLog(t)
	release := make(chan struct{})
	slow, err := l.Observe(0, func(session.Event) { <-release })
	if err != nil {
		t.Fatal(err)
	}
	bad, err := l.Observe(0, func(e session.Event) { panic(fmt.Sprint("at ", e.Seq)) })
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	again, err := l.Observe(0, func(e session.Event) {
		seqs = append(seqs, e.Seq)
		if e.Type == session.TypeTurnEnd {
			appended(t, l, session.Title{Title: "from an observer"})
		}
		if e.Type == session.TypeTitle {
			l.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	appended(t, l, sessiontest.Turn(1)...)
	if err := errors.Join(again.Wait(t.Context()), bad.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	if l.Title() != "from an observer" || len(seqs) != int(l.Len()) {
		t.Errorf("%q %v", l.Title(), seqs)
	}
	if err := bad.Err(); err == nil || !strings.Contains(err.Error(), "at 13") || !strings.Contains(err.Error(), "13 earlier") {
		t.Error(err)
	}
	if again.Err() != nil {
		t.Error(again.Err())
	}
	slow.Stop()
	close(release)
	if err := slow.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestRepairRequeues: a prompt that was taken from the queue and said nowhere
// waits again after a crash; one that reached the surface or a request does not.
func TestRepairRequeues(t *testing.T) {
	type ps = []session.Payload
	say := func(id string) session.UserMessage { return sessiontest.User(id, id) }
	step := session.StepStart{Turn: 1, Step: 1}
	for _, c := range []struct {
		name  string
		after ps // the claim of a and b
		want  []string
	}{
		{"claimed-only", nil, []string{"a", "b", "later"}},
		{"in-a-step", ps{step}, []string{"a", "b", "later"}},
		{"one-said", ps{step, say("a")}, []string{"b", "later"}},
		{"all-said", ps{step, say("a"), say("b")}, []string{"later"}},
		{"requested", ps{step, say("other"), sessiontest.Chunk(1, 1, "x")}, []string{"later"}},
		{"queued-again", ps{inserted(session.NextStep, 0, 0, "a")}, []string{"b", "later"}},
		{"turn-over", ps{session.TurnEnd{Turn: 1, Reason: session.EndReason{Kind: session.EndBlocked}}, session.TurnStart{Turn: 2}}, []string{"later"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			canceled := inserted(session.NextTurn, 0, 1)
			canceled.Outcome = "canceled"
			l := newLog(t, inserted(session.NextTurn, 0, 0, "no", "a", "b", "later"), session.TurnStart{Turn: 1}, canceled, inserted(session.NextTurn, 0, 2))
			appended(t, l, c.after...)
			if _, err := l.Repair(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range l.Inbox(session.NextTurn) {
				got = append(got, m.ID)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestUsage: what the requests took is in the log, in this life and the next; a fork
// begins at nothing.
func TestUsage(t *testing.T) {
	usage := func(in, out int64) *message.Usage { return &message.Usage{Input: in, Output: out, Reasoning: 1} }
	l := newLog(t)
	chunk := func(u *message.Usage) session.Payload {
		return session.Chunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.UsageChunk, Usage: u}}
	}
	text := session.Chunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: `{"usage":{"inputTokens":1}}`}}
	_, err := l.Append(session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1}, text, chunk(usage(10, 2)), chunk(usage(20, 3)),
		session.LLMCall{Purpose: "title", Request: lossless.Obj(), Usage: usage(5, 5)},
		session.StepEnd{Turn: 1, Step: 1}, session.TurnEnd{Turn: 1, Reason: session.EndReason{Kind: session.EndCompleted}})
	if err != nil {
		t.Fatal(err)
	}
	want := message.Usage{Input: 35, Output: 10, Reasoning: 3}
	if got := l.Usage(); got != want {
		t.Errorf("Usage = %+v, want %+v", got, want)
	}
	again, err := session.NewLog(l.Meta(), l.Events(0))
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Usage(); got != want {
		t.Errorf("read again: Usage = %+v, want %+v", got, want)
	}
	meta, events, err := l.Fork(-1, "fork")
	if err != nil {
		t.Fatal(err)
	}
	fork, err := session.NewLog(meta, events)
	if err != nil {
		t.Fatal(err)
	}
	if got := fork.Usage(); got != (message.Usage{}) {
		t.Errorf("a fork: Usage = %+v, want nothing", got)
	}
}
