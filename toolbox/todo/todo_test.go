package todo

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// rig is an agent with the tool.
type rig struct {
	*agenttest.Kit
	agent *agent.Agent
}

func newRig(t *testing.T) *rig {
	k := agenttest.New(t)
	k.Script("steps:\n- text: done\n")
	return &rig{k, k.Start(agent.Options{Plugins: []*cordis.Plugin{Plugin()}})}
}

func (r *rig) call(args string) *tool.Result {
	r.T.Helper()
	return r.Tools.Execute(r.Context(), tool.Call{Name: "todo_write", Scope: r.agent.Scope(), Arguments: lossless.Text(args)})
}

func text(r *tool.Result) string {
	var all []string
	for _, b := range r.Content {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

func TestDefinition(t *testing.T) {
	d := definition(nil)
	golden(t, "definition", fmt.Sprintf("%s\n%s\n%s\n", d.Name, d.Description, d.Parameters.JSON()))
}

func TestTexts(t *testing.T) {
	r := newRig(t)
	many := strings.Repeat(`{"content":"x","status":"pending"},`, limits.TodoItems) + `{"content":"x","status":"pending"}`
	for name, c := range map[string]struct{ todos, want string }{
		"empty":           {``, "Updated todo list: 0 pending, 0 in progress, 0 completed."},
		"one-of-each":     {`{"content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}`, "Updated todo list: 1 pending, 1 in progress, 1 completed."},
		"two-in-progress": {`{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}`, "Updated todo list: 0 pending, 2 in progress, 0 completed.\nMore than one entry is in progress. Unless you really work on several at once, keep one, and set the others to pending."},
		"empty-content":   {`{"content":" ","status":"pending"}`, "Error: todos[0].content is empty: say what is to be done"},
		"long-content":    {`{"content":"` + strings.Repeat("é", limits.TodoContent+1) + `","status":"pending"}`, "Error: todos[0].content has 1001 characters, more than 1000: say it in a few words"},
		"too-many":        {many, "Error: todos has 201 entries, more than 200: keep what is left to do, and drop what is completed"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, text(r.call(`{"todos":[`+c.todos+`]}`))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := r.call(`{"todos":[{"content":"a","status":"done"}]}`); !got.IsError || !strings.Contains(text(got), "in_progress") {
		t.Errorf("a status that there is not: %s", text(got))
	}
}

func TestListIsLogged(t *testing.T) {
	r := newRig(t)
	r.call(`{"todos":[{"content":"a","status":"pending"}]}`)
	r.call(`{"todos":[{"content":"","status":"pending"}]}`) // refused
	r.call(`{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]}`)
	r.call(`{"todos":[]}`)
	want := []session.Todo{
		{Todos: []session.TodoItem{{Content: "a", Status: "pending"}}},
		{Todos: []session.TodoItem{{Content: "a", Status: "completed"}, {Content: "b", Status: "in_progress"}}},
		{Todos: []session.TodoItem{}},
	}
	if diff := cmp.Diff(want, agenttest.Payloads[session.Todo](t, r.agent.Session().Log)); diff != "" {
		t.Error(diff)
	}
}

// TestWithoutAnAgent: a client of the registry gets its answer all the same.
func TestWithoutAnAgent(t *testing.T) {
	root := cordis.New()
	for _, p := range []*cordis.Plugin{tool.Plugin(), Plugin()} {
		f, err := root.Mount(p, nil)
		if err == nil {
			err = f.Await(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tools, _ := tool.Service.Get(root)
	r := tools.Execute(t.Context(), tool.Call{Name: "todo_write", Arguments: lossless.Text(`{"todos":[{"content":"a","status":"pending"}]}`)})
	if text(r) != "Updated todo list: 1 pending, 0 in progress, 0 completed." {
		t.Error(text(r))
	}
}

func TestCards(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct{ args, call, result string }{
		"empty": {`{"todos":[]}`, `{"type":"generic","title":"Todo list: empty","kind":"other"}`, `{"type":"generic","kind":"other"}`},
		"some": {
			`{"todos":[{"content":"a\nb","status":"completed"},{"content":"c","status":"in_progress"},{"content":"d","status":"pending"}]}`,
			`{"type":"generic","title":"Todo list: 1 of 3 done, now: c","kind":"other"}`,
			`{"type":"generic","kind":"other","content":[{"type":"text","text":"[x] a b\n[\u003e] c\n[ ] d"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := lossless.Text(c.args)
			call := r.Tools.PresentCall(t.Context(), "todo_write", r.agent.Scope(), args)
			result := r.Tools.PresentResult(t.Context(), "todo_write", r.agent.Scope(), args, r.call(c.args))
			for _, card := range []struct {
				card *tool.Card
				want string
			}{{call, c.call}, {result, c.result}} {
				got, err := card.card.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.ReplaceAll(card.want, `\u003e`, ">"), string(got)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
