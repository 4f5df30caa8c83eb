package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
)

func read[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// TestInfo: a plugin knows its own session, and no other.
func TestInfo(t *testing.T) {
	w := newWorld(t)
	a, b := w.start(agent.Options{}), w.start(agent.Options{})
	w.Run(a, "Greet me.")
	w.Run(a, "Again.")
	got := read[agent.SessionInfo](t, w.eval(a, "await ctx.sessions.info()"))
	want := agent.SessionInfo{
		ID: a.ID(), Title: "Greet me.", Cwd: "/project", CreatedAt: a.Session().Meta().CreatedAt, Provider: "echo", Model: "one", ContextWindow: 100_000,
		Turns: 2, Messages: 4, Events: a.Session().Len(),
		Usage: agent.TokenUsage{InputTokens: 60, OutputTokens: 20, CacheReadTokens: 4, TotalTokens: 84},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := read[agent.SessionInfo](t, w.eval(b, "await ctx.sessions.info()")); got.ID != b.ID() || got.Turns != 0 || got.Provider != "echo" {
		t.Errorf("%+v", got)
	}
}

// TestMessages: the conversation as plain data.
func TestMessages(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	w.mount(a, plugin("probe", "return 'found it'"))
	w.model.says(func(_ context.Context, r *llm.Request) (string, []string, error) {
		if r.Messages[len(r.Messages)-1].Text() == "Look." {
			return "I look.", []string{"probe"}, nil
		}
		return "Done.", nil, nil
	})
	w.Run(a, "Look.")
	page := read[agent.MessagePage](t, w.eval(a, "await ctx.sessions.messages()"))
	var got []string
	for _, m := range page.Messages {
		got = append(got, fmt.Sprintf("%s %s %q %v %s", m.Role, m.Source, m.Text, m.Calls, m.CallID))
	}
	want := []string{
		`user user "Look." [] `, `assistant model "I look." [{call-0 probe {}}] `, `user tool "found it" [] call-0`, `assistant model "Done." [] `,
	}
	if d := cmp.Diff(want, got); d != "" || page.Total != 4 {
		t.Error(d, page.Total)
	}
	for options, want := range map[string]string{
		"{ limit: 1 }": "3:1", "{ from: 0, limit: 2 }": "0:2", "{ from: -3 }": "1:3", "{ from: 99 }": "4:0", "{ from: -99 }": "0:4",
	} {
		page := read[agent.MessagePage](t, w.eval(a, "await ctx.sessions.messages("+options+")"))
		if got := fmt.Sprintf("%d:%d", page.From, len(page.Messages)); got != want {
			t.Errorf("%s: %s, want %s", options, got, want)
		}
	}
	w.Run(a, strings.Repeat("é", 20_001))
	page = read[agent.MessagePage](t, w.eval(a, "await ctx.sessions.messages({ from: 4, limit: 1 })"))
	if m := page.Messages[0]; !m.Truncated || m.Text != strings.Repeat("é", 20_000) {
		t.Errorf("%d bytes, %t", len(m.Text), m.Truncated)
	}
}

// TestEvents: the log in pages; pieces of answers only where they are asked for.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	for i := range 5 {
		w.Run(a, fmt.Sprint("Say ", i))
	}
	raw := func(data string) {
		v, err := lossless.Parse([]byte(data))
		if err == nil {
			_, err = a.Session().Append(session.Raw{Type: "test/raw", Data: v})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw(`{"a":"b"}`)
	raw(`{"large":"` + strings.Repeat("x", 256<<10) + `"}`)
	raw(`{"n":9007199254740993}`)
	all := read[[]agent.SessionEvent](t, w.eval(a, `await (async () => {
	  const all = []
	  for (let page = { next: 0, done: false }; !page.done;) { page = await ctx.sessions.events({ from: page.next, limit: 7 }); all.push(...page.events) }
	  return all })()`))
	var got, want []string
	for _, e := range all {
		got = append(got, fmt.Sprint(e.Seq, e.Type, e.Time))
	}
	for _, e := range a.Session().Events(0) {
		if e.Type != session.TypeChunk {
			want = append(want, fmt.Sprint(e.Seq, e.Type, e.Time))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	n := len(all)
	if string(all[n-3].Data) != `{"a":"b"}` || all[n-2].Data != nil || all[n-1].Data != nil {
		t.Errorf("%s, %.20s, %s", all[n-3].Data, all[n-2].Data, all[n-1].Data)
	}
	for options, want := range map[string]int{
		"{ types: ['turn/end'] }": 5, "{ types: ['assistant/chunk'], limit: 1000 }": 25, "{ from: -3 }": 3, "{ from: 9999 }": 0, "{ from: -9999, limit: 1 }": 1,
	} {
		page := read[agent.EventPage](t, w.eval(a, "await ctx.sessions.events("+options+")"))
		if len(page.Events) != want {
			t.Errorf("%s: %d events, want %d", options, len(page.Events), want)
		}
	}
	for _, use := range []string{"events({ limit: 1001 })", "events({ limit: -1 })", "messages({ limit: 1001 })"} {
		if got := w.eval(a, "await failed(() => ctx.sessions."+use+")"); !strings.HasPrefix(got, "true | SESSIONS_INVALID_OPTIONS | limit is ") {
			t.Errorf("%s: %s", use, got)
		}
	}
}
