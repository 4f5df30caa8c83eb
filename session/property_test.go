package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// model is a log as one would write it down at first: a list of what the model
// sees, and flags.
type model struct {
	seq        int64
	turn, step int
	open, deep bool // a turn, a step
	answered   bool
	calls      []string // of the open step's answer
	made, done int
	seen       []seen
	inbox      []string
}

type seen struct {
	seq   int64
	text  string
	group int64 // the answer that a result belongs to, or the answer itself
}

// propose draws a payload, and says whether the model takes it and what it does.
func (m *model) propose(t *rapid.T) (p session.Payload, takes bool, apply func()) {
	word := rapid.SampledFrom([]string{"a", "b", "\xff", "é", "\"\\\n"}).Draw(t, "word")
	turn := rapid.SampledFrom([]int{m.turn, m.turn, m.turn, m.turn + 1}).Draw(t, "turn")
	step := rapid.SampledFrom([]int{m.step, m.step, m.step, m.step + 1}).Draw(t, "step")
	kind := rapid.SampledFrom([]string{
		"turn", "turn-end", "step", "step", "step", "step-end", "user", "chunk", "answer", "answer", "answer",
		"call", "call", "call", "result", "result", "result", "replace", "insert", "inbox",
	}).Draw(t, "kind")
	lucky := rapid.IntRange(0, 5).Draw(t, "luck") > 0 // most of what is proposed fits
	if lucky {
		turn, step = m.turn, m.step
		switch kind {
		case "turn":
			turn++
		case "step":
			step++
		}
	}
	here := m.open && m.deep && turn == m.turn && step == m.step
	idle := m.done == len(m.calls)
	show := func(text string, group int64) func() {
		return func() { m.seen = append(m.seen, seen{m.seq, text, group}) }
	}
	switch kind {
	case "turn":
		return session.TurnStart{Turn: turn}, !m.open && turn == m.turn+1, func() { m.turn, m.step, m.open = turn, 0, true }
	case "turn-end":
		return end(turn), m.open && !m.deep && turn == m.turn && turn > 0, func() { m.open = false }
	case "step":
		return session.StepStart{Turn: turn, Step: step}, m.open && !m.deep && turn == m.turn && step == m.step+1, func() {
			m.step, m.deep, m.answered, m.calls, m.made, m.done = step, true, false, nil, 0, 0
		}
	case "step-end":
		return session.StepEnd{Turn: turn, Step: step}, here && idle, func() { m.deep, m.calls, m.made, m.done = false, nil, 0, 0 }
	case "user":
		return sessiontest.User("u", word), !m.deep || idle, show(word, -1)
	case "chunk":
		return sessiontest.Chunk(turn, step, word), here, func() {}
	case "answer":
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3).Draw(t, "ids")
		if lucky {
			ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		}
		var blocks []message.Block
		for _, id := range ids {
			blocks = append(blocks, sessiontest.CallBlock(id, "echo", word))
		}
		unique := len(slices.Compact(slices.Sorted(slices.Values(ids)))) == len(ids)
		return sessiontest.Answer(turn, step, "a", word, blocks...), here && !m.answered && unique, func() {
			m.answered, m.calls = true, ids
			for i := range ids {
				m.calls[i] += word
			}
			show(word, m.seq)()
		}
	case "call":
		next := max(m.made, m.done)
		id := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "id")
		if lucky && next < len(m.calls) {
			id, word = m.calls[next][:1], m.calls[next][1:]
		}
		return sessiontest.Call(turn, step, sessiontest.CallBlock(id, "echo", word)),
			here && next < len(m.calls) && m.calls[next] == id+word, func() { m.made = next + 1 }
	case "result":
		return m.result(t, turn, step, word, here, lucky)
	case "replace", "insert":
		return m.change(t, word)
	}
	start := rapid.IntRange(-1, 3).Draw(t, "start")
	removed := rapid.IntRange(0, 2).Draw(t, "removed")
	id := fmt.Sprint("m", rapid.IntRange(0, 3).Draw(t, "message"))
	fits := start >= 0 && start+removed <= len(m.inbox)
	if fits {
		rest := slices.Concat(m.inbox[:start], m.inbox[start+removed:])
		fits = !slices.Contains(rest, id)
	}
	return inserted(session.NextStep, start, removed, id), fits, func() {
		m.inbox = slices.Concat(m.inbox[:start], []string{id}, m.inbox[start+removed:])
	}
}

func (m *model) result(t *rapid.T, turn, step int, word string, here, lucky bool) (session.Payload, bool, func()) {
	id := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "id")
	never := rapid.IntRange(0, 3).Draw(t, "never") == 0
	if lucky && m.done < len(m.calls) {
		id = m.calls[m.done][:1]
	}
	r := sessiontest.Result(turn, step, id, word)
	if never {
		r = with(r, session.CodeNotStarted)
	}
	takes := here && m.done < len(m.calls) && strings.HasPrefix(m.calls[m.done], id) && (never || m.done < m.made)
	return r, takes, func() {
		group := int64(0)
		for _, s := range m.seen {
			if s.group == s.seq {
				group = s.seq
			}
		}
		m.done++
		m.seen = append(m.seen, seen{m.seq, word, group})
	}
}

// change draws a replace, or, where it is empty, an insert.
func (m *model) change(t *rapid.T, word string) (session.Payload, bool, func()) {
	if len(m.seen) == 0 {
		return op(sessiontest.User("u", word), session.Op{Kind: session.Insert, Start: 0}), false, nil
	}
	from := rapid.IntRange(0, len(m.seen)-1).Draw(t, "from")
	to := rapid.IntRange(from, len(m.seen)-1).Draw(t, "to")
	isResult := func(i int) bool { return i < len(m.seen) && m.seen[i].group >= 0 && m.seen[i].group != m.seen[i].seq }
	if rapid.Bool().Draw(t, "insert") {
		return op(sessiontest.User("u", word), session.Op{Kind: session.Insert, Start: m.seen[from].seq}), !isResult(from), func() {
			m.seen = slices.Insert(m.seen, from, seen{m.seq, word, -1})
		}
	}
	var sources []int64
	waits := false
	for _, s := range m.seen[from : to+1] {
		sources = append(sources, s.seq)
	}
	if len(m.calls) > m.done { // the answer that still waits is the last one
		for i, s := range m.seen {
			if s.group == s.seq {
				waits = from <= i && i <= to
			}
		}
	}
	u := op(sessiontest.User("u", word), session.Op{Kind: session.Replace, Start: m.seen[from].seq, End: m.seen[to].seq}, sources...)
	empty := rapid.Bool().Draw(t, "remove")
	if empty {
		u.Message.Content = nil
	}
	return u, !isResult(from) && !isResult(to+1) && !waits, func() {
		var in []seen
		if !empty {
			in = []seen{{m.seq, word, -1}}
		}
		m.seen = slices.Concat(m.seen[:from], in, m.seen[to+1:])
	}
}

// TestLogAgainstModel: random payloads, of which many break a rule, are taken or
// refused as a naive model says; the surface is the model's; what was written
// reads back as the same log, at every length; the repair always ends the turn.
func TestLogAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := session.NewLog(session.Meta{ID: "s"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{}
		for range rapid.IntRange(1, 80).Draw(t, "length") {
			p, takes, apply := m.propose(t)
			events, err := l.Append(p)
			if (err == nil) != takes {
				t.Fatalf("%T %+v: %v, the model says %t", p, p, err, takes)
			}
			if !takes {
				continue
			}
			apply()
			if events[0].Seq != m.seq {
				t.Fatalf("seq %d, want %d", events[0].Seq, m.seq)
			}
			m.seq++
		}
		check(t, l, m)
		if _, err := l.Repair(); err != nil {
			t.Fatal(err)
		}
		if turn := l.Turn(); turn.TurnOpen || turn.StepOpen || len(l.Unanswered()) > 0 {
			t.Fatalf("still open: %+v", turn)
		}
		text := l.Meta().Line() + "\n" + strings.Join(append(sessiontest.Lines(l.Events(0)), `{"torn`), "\n")
		read, kept, err := session.Decode(text, nil)
		if err != nil || int(kept) != len(text)-len(`{"torn`) && l.Len() > 0 {
			t.Fatalf("kept %d of %d: %v", kept, len(text), err)
		}
		if d := cmp.Diff(sessiontest.Lines(l.Events(0)), sessiontest.Lines(read.Events(0))); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(l.Surface(), read.Surface(), cmp.Comparer(lossless.Equal)); d != "" {
			t.Fatal(d)
		}
	})
}

func check(t *rapid.T, l *session.Log, m *model) {
	var want, got []string
	for _, s := range m.seen {
		want = append(want, fmt.Sprintf("%d %s", s.seq, s.text))
	}
	for _, n := range l.Surface() {
		b := n.Message.Content[0]
		if b.Type == message.ResultBlock {
			b = b.Content[0]
		}
		got = append(got, fmt.Sprintf("%d %s", n.Seq, b.Text))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	var inbox []string
	for _, w := range l.Inbox(session.NextStep) {
		inbox = append(inbox, w.ID)
	}
	if d := cmp.Diff(m.inbox, inbox); d != "" && len(m.inbox)+len(inbox) > 0 {
		t.Fatal(d)
	}
}
