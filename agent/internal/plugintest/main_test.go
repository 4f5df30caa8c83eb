// Package plugintest holds the tests of what mounted plugins may ask of their
// agent, its session and its model: with a real worker on a real loop.
package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }

func toolset() *cordis.Plugin {
	return selfmod.Plugin(selfmod.Config{Worker: os.Getenv("DSH_TEST_WORKER")})
}

// world is a kit with a model that answers what it is told to.
type world struct {
	*agenttest.Kit
	model *model
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{agenttest.NewWith(t, agenttest.Options{Host: []*cordis.Plugin{timer.Plugin()}, Agents: agent.Config{Retry: llm.Retry{Max: -1}}}), &model{}}
	w.Adapter("echo", w.model)
	return w
}

// start starts an agent with the toolset.
func (w *world) start(o agent.Options) *agent.Agent {
	w.T.Helper()
	o.Model = llm.Config{Provider: "echo"}
	o.Plugins = []*cordis.Plugin{toolset()}
	return w.Start(o)
}

// model is a model whose answers are a function, by default "you said" and the
// last message.
type model struct {
	mu     sync.Mutex
	answer func(ctx context.Context, r *llm.Request) (text string, calls []string, err error)
}

var _ llm.Adapter = (*model)(nil)

func (m *model) Models() []llm.Model {
	return []llm.Model{{Name: "one", ContextWindow: 100_000, MaxTokens: 5000, Images: true}, {Name: "two"}}
}

func (m *model) Model(name string) (llm.Model, error) {
	found, _, err := llm.Find(m.Models(), true, name)
	return found, err
}

func (m *model) Encode(r *llm.Request) ([]byte, error) { return r.JSON() }

func (m *model) says(answer func(ctx context.Context, r *llm.Request) (string, []string, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

func (m *model) Stream(ctx context.Context, r *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		m.mu.Lock()
		answer := m.answer
		m.mu.Unlock()
		out := llm.NewEmitter(yield)
		text, calls, err := "you said "+r.Messages[len(r.Messages)-1].Text(), []string(nil), error(nil)
		if answer != nil {
			text, calls, err = answer(ctx, r)
		}
		if err != nil {
			out.Fail(llm.AsFailure(err, llm.CodeInternal))
			return
		}
		if text != "" {
			out.Append(out.Open(llm.TextBlock), text)
		}
		for i, name := range calls {
			out.Call(out.Open(llm.CallBlock), fmt.Sprintf("call-%d", i), name, "{}")
		}
		out.Usage(llm.Usage{Input: 30, Output: 10, CacheRead: 2})
		out.Finish(llm.Stop, lossless.Value{})
	}
}

// plugin is the code of a plugin with a tool of its name that runs a body.
func plugin(name, body string, before ...string) string {
	return fmt.Sprintf(`return {
  name: %[1]q, inject: ['tools', 'timer', 'agents', 'sessions', 'llm'],
  apply(ctx) {
    const failed = async (fn) => { try { const v = await fn(); return 'no error: ' + JSON.stringify(v) } catch (e) { return [e instanceof Error, e.code, e.message].join(' | ') } }
    %[3]s
    harness.registerTool(ctx, harness.defineTool({
      name: %[1]q, description: 'for a test', parameters: { x: { type: 'json' } },
      output: { schema: { type: 'json' }, render(_a, v) { return [{ type: 'text', text: typeof v === 'string' ? v : JSON.stringify(v) }] } },
      async execute(args, exec) { %[2]s },
    }))
  },
}`, name, body, strings.Join(before, "\n    "))
}

// call calls a tool that an agent sees, or with nil a global one.
func (w *world) call(a *agent.Agent, name string, args any) (text string, isError bool) {
	w.T.Helper()
	encoded, err := json.Marshal(args)
	if err != nil {
		w.T.Fatal(err)
	}
	var scope *tool.Scope
	if a != nil {
		scope = a.Scope()
	}
	r := w.Tools.Execute(w.Context(), tool.Call{Name: name, Arguments: encoded, Scope: scope})
	return selfmodtest.Text(r), r.IsError
}

func (w *world) mount(a *agent.Agent, code string) string {
	w.T.Helper()
	text, isError := w.call(a, "cordis_mount", map[string]string{"code": code})
	id, found := "", false
	if i := strings.Index(text, "dyn-"); i >= 0 {
		id, found = strings.TrimRight(strings.Fields(text[i:])[0], ".,:;"), true
	}
	if isError || !found {
		w.T.Fatalf("mount: %s", text)
	}
	return id
}

func (w *world) unmount(a *agent.Agent, id string) {
	w.T.Helper()
	if text, isError := w.call(a, "cordis_unmount", map[string]string{"id": id}); isError {
		w.T.Fatalf("unmount: %s", text)
	}
}

// eval computes an expression in a plugin of an agent.
func (w *world) eval(a *agent.Agent, expression string) string {
	w.T.Helper()
	id := w.mount(a, plugin("eval", "return ("+expression+") ?? 'undefined'"))
	defer w.unmount(a, id)
	text, _ := w.call(a, "eval", map[string]string{})
	return text
}

// eventually waits for what no event tells of.
func (w *world) eventually(done func() (now string, ok bool)) {
	w.T.Helper()
	(&selfmodtest.Rig{T: w.T}).Eventually("it", done)
}
