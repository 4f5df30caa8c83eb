package repeat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/agent/repeat"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/golden"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newKit has an agent with the plugin, and the tools look and find.
func newKit(t testing.TB, script string) (*agenttest.Kit, *agent.Agent) {
	k := agenttest.New(t)
	for _, name := range []string{"look", "find"} {
		_, err := k.Tools.Register(k.Root, &tool.Definition{
			Name: name, Description: "for a test",
			Parameters: schema.Must(schema.Parameters(schema.Object(schema.Prop("at", schema.String(""))))),
			Output: tool.Output{Schema: schema.Must(schema.Output(schema.String(""))), Render: func(context.Context, json.RawMessage, json.RawMessage) ([]tool.Block, error) {
				return []tool.Block{tool.TextBlock("nothing")}, nil
			}},
			Execute: func(context.Context, *tool.Exec) (tool.Outcome, error) {
				return tool.Outcome{Value: []byte(`"nothing"`)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	k.Script(script)
	return k, k.Start(agent.Options{Plugins: []*cordis.Plugin{repeat.Plugin()}})
}

// calls writes a script: of each step the calls, separated by commas, each a name
// and the raw arguments; an answer without calls ends the turn.
func calls(steps ...string) string {
	var b strings.Builder
	b.WriteString("steps:\n")
	for _, step := range steps {
		if step == "" {
			b.WriteString("- text: done\n")
			continue
		}
		b.WriteString("- calls:\n")
		for call := range strings.SplitSeq(step, ",") {
			name, args, _ := strings.Cut(call, " ")
			fmt.Fprintf(&b, "  - name: %s\n    arguments: %q\n", name, args)
		}
	}
	return b.String()
}

// reminders are the steps, as turn.step, whose first messages tell it, with the
// count that they tell.
func reminders(t testing.TB, a *agent.Agent) []string {
	out := []string{}
	at := ""
	for _, e := range a.Session().Events(0) {
		p, err := e.Payload()
		if err != nil {
			t.Fatal(err)
		}
		switch p := p.(type) {
		case session.StepStart:
			at = fmt.Sprintf("%d.%d", p.Turn, p.Step)
		case session.UserMessage:
			if p.Message.Source == (message.Source{Kind: message.SourcePlugin, Name: repeat.Name}) {
				words := strings.Fields(p.Message.Text())
				out = append(out, at+" "+words[3]+" "+words[4])
			}
		}
	}
	return out
}

func TestReminders(t *testing.T) {
	const look, find = `look {"at":"a"}`, `find {"at":"a"}`
	many := func(n int, step string, more ...string) []string {
		var steps []string
		for range n {
			steps = append(steps, step)
		}
		return append(steps, more...)
	}
	tests := []struct {
		name  string
		steps []string
		turns int
		want  []string
	}{
		{"none", many(2, look, ""), 1, []string{}},
		{"three", many(3, look, ""), 1, []string{"1.4 look 3"}},
		{"all", many(12, look, ""), 1, []string{"1.4 look 3", "1.6 look 5", "1.9 look 8"}},
		{"other_arguments", []string{look, look, `look {"at": "a"}`, look, look, ""}, 1, []string{}},
		{"other_tool", []string{look, look, find, look, look, ""}, 1, []string{}},
		{"again", append(many(3, look, find), many(3, look, "")...), 1, []string{"1.4 look 3", "1.8 look 3"}},
		{"one_step", []string{look + "," + look + "," + look, ""}, 1, []string{"1.2 look 3"}},
		{"passed", []string{strings.Join(many(9, look), ","), ""}, 1, []string{"1.2 look 9"}},
		{"row_that_ended", []string{strings.Join(many(4, look, find), ","), ""}, 1, []string{}},
		{"each_turn_anew", many(2, look, "", look, look, ""), 2, []string{}},
		{"failures_too", many(3, "nobody {}", ""), 1, []string{"1.4 nobody 3"}},
		{"no_json", many(3, "look }", ""), 1, []string{"1.4 look 3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, a := newKit(t, calls(tt.steps...))
			for range tt.turns {
				if end := k.Run(a, "go on"); end.Kind != session.EndCompleted {
					t.Fatalf("the turn ended %+v", end)
				}
			}
			if diff := cmp.Diff(tt.want, reminders(t, a)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGolden(t *testing.T) {
	k, a := newKit(t, calls("look {}", "look {}", "look {}", ""))
	k.Run(a, "go on")
	node, ok := a.Session().LastNode(func(n session.Node) bool { return n.Message.Source.Name == repeat.Name })
	if !ok {
		t.Fatal("no reminder")
	}
	golden.Compare(t, "reminder.txt", node.Message.Text()+"\n")
}

// TestProperty holds it against counting by hand.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"look {}", "look {}", "look {}", `look {"at":"b"}`, "find {}"}), 1, 4), 0, 8).Draw(rt, "steps")
		var script []string
		var all []string
		want := []string{}
		told := 0
		for n, step := range steps {
			script = append(script, strings.Join(step, ","))
			for _, call := range step {
				if len(all) > 0 && all[len(all)-1] != call {
					all, told = nil, 0
				}
				all = append(all, call)
			}
			reached := 0
			for _, count := range []int{3, 5, 8} {
				if told < count && count <= len(all) {
					reached = count
				}
			}
			if reached > 0 {
				told = reached
				name, _, _ := strings.Cut(all[0], " ")
				want = append(want, fmt.Sprintf("1.%d %s %d", n+2, name, len(all)))
			}
		}
		k, a := newKit(t, calls(append(script, "")...))
		k.Run(a, "go on")
		if diff := cmp.Diff(want, reminders(t, a)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestOthers(t *testing.T) {
	k, a := newKit(t, calls("look {}", "look {}", "look {}", ""))
	child := k.Start(agent.Options{Parent: a.Scope()})
	k.Run(child, "go on")
	if got := reminders(t, child); len(got) > 0 {
		t.Errorf("a child without the plugin was reminded: %q", got)
	}
	f, err := k.Root.Mount(repeat.Plugin(), nil)
	if err == nil {
		err = f.Await(k.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "mount it on the agent's context") {
		t.Error(err)
	}
}
