package agent_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
	"github.com/google/go-cmp/cmp"
)

// once is a model that makes the calls, and then says done.
func once(calls ...agenttest.Called) agenttest.Func {
	return func(_ context.Context, r *llm.Request, out *llm.Emitter) {
		if len(r.Messages) == 1 {
			agenttest.Calls(out, calls...)
			return
		}
		agenttest.Say(out, "done")
	}
}

// results returns the results of the log, by call.
func results(t *testing.T, a *agent.Agent) map[string]session.Result {
	t.Helper()
	out := map[string]session.Result{}
	for _, r := range agenttest.Payloads[session.Result](t, a.Session().Log) {
		out[r.Message.Source.CallID] = r
	}
	return out
}

func text(r session.Result) string { return message.JoinText(r.Message.Content[0].Content) }

func TestArguments(t *testing.T) {
	for _, c := range []struct{ name, args, code string }{
		{"empty", "", ""},
		{"valid", ` { "n" : 1 } `, ""},
		{"notJSON", `{"n": 1`, tool.CodeInvalidArgs},
		{"notUTF8", "{\"s\":\"\xff\"}", tool.CodeInvalidArgs},
		{"wrongType", `{"n":"x"}`, tool.CodeInvalidArgs},
		{"notAnObject", `[1]`, tool.CodeInvalidArgs},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := agenttest.New(t)
			k.Adapter(agenttest.Provider, once(agenttest.Called{ID: "c1", Name: "echo", Arguments: c.args}))
			a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(echo("echo"))}})
			wantEnd(t, k.Run(a, "go"), session.EndCompleted)
			calls := agenttest.Payloads[session.Call](t, a.Session().Log)
			if string(calls[0].Arguments) != c.args {
				t.Errorf("the log has the arguments %q, the model wrote %q", calls[0].Arguments, c.args)
			}
			r := results(t, a)["c1"]
			if c.code == "" && r.Error != nil || c.code != "" && (r.Error == nil || r.Error.Code != c.code) {
				t.Errorf("result %q, error %+v, want code %q", text(r), r.Error, c.code)
			}
		})
	}
}

func TestUnknownTool(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps: [{calls: [{name: nothing, arguments: {}}]}, {text: ok}]")
	a := k.Start(agent.Options{})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial []", "model: <nothing>", "call call_1_1 nothing {}",
		`result call_1_1: Error: unknown tool "nothing" (UNKNOWN_TOOL)`, "/step", "step 2", "model: ok", "/step", "/turn completed")
}

// TestParallelCalls: 200 calls share a pool, and everything but the bodies keeps
// the order of the answer.
func TestParallelCalls(t *testing.T) {
	const n, pool = 200, 7
	k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{MaxParallel: pool}})
	calls := make([]agenttest.Called, n)
	for i := range calls {
		calls[i] = agenttest.Called{ID: fmt.Sprint("c", i), Name: "work", Arguments: fmt.Sprintf(`{"n":%d}`, i)}
	}
	k.Adapter(agenttest.Provider, once(calls...))
	var running, most atomic.Int64
	full := make(chan struct{})
	var mu sync.Mutex
	var pre, post []string
	note := func(list *[]string, id string) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, id)
	}
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{
		tools(define("work", func(ctx context.Context, x *tool.Exec) (string, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			if now == pool {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			select {
			case <-full: // the pool was full once
			case <-ctx.Done():
			}
			if strings.HasSuffix(x.CallID, "3") {
				for range 100 {
					runtime.Gosched()
				}
			}
			return x.CallID, nil
		}, parallel)),
		on(func(c *cordis.Context) (*cordis.Handle, error) {
			return tool.PreExecute.On(c, func(ctx context.Context, x *tool.Exec, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
				note(&pre, x.CallID)
				return next(ctx)
			})
		}),
		on(func(c *cordis.Context) (*cordis.Handle, error) {
			return tool.PostExecute.On(c, func(ctx context.Context, f tool.Finished, next func(context.Context) (tool.PostDecision, error)) (tool.PostDecision, error) {
				note(&post, f.Exec.CallID)
				return next(ctx)
			})
		})}})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	if most.Load() != pool {
		t.Errorf("%d bodies ran at the same time, want %d", most.Load(), pool)
	}
	var want, logged, called []string
	for i := range n {
		want = append(want, fmt.Sprint("c", i))
	}
	for _, r := range agenttest.Payloads[session.Result](t, a.Session().Log) {
		logged = append(logged, text(r))
	}
	for _, c := range agenttest.Payloads[session.Call](t, a.Session().Log) {
		called = append(called, c.CallID)
	}
	for name, got := range map[string][]string{"tool/call": called, "pre-execute": pre, "post-execute": post, "tool/result": logged} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is out of order: %s", name, diff)
		}
	}
}

// TestExclusiveCalls: an exclusive call runs alone, between what came before and what
// comes after.
func TestExclusiveCalls(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps: [{calls: [{name: par}, {name: par}, {name: alone}, {name: par}, {name: alone}, {name: alone}, {name: par}]}, {text: ok}]")
	var running, alone atomic.Int64
	var bad atomic.Bool
	run := func(exclusive bool) body {
		return func(ctx context.Context, x *tool.Exec) (string, error) {
			n := running.Add(1)
			defer running.Add(-1)
			if exclusive {
				alone.Add(1)
				defer alone.Add(-1)
			}
			for range 200 {
				runtime.Gosched()
				if alone.Load() > 0 && (running.Load() > 1 || n > 1) {
					bad.Store(true)
				}
			}
			return "ok", nil
		}
	}
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("par", run(false), parallel), define("alone", run(true)))}})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	if bad.Load() {
		t.Error("an exclusive call overlapped with another one")
	}
	if n := len(results(t, a)); n != 7 {
		t.Errorf("%d results", n)
	}
}

// TestCheckpoints: the call is durable before its body runs, the messages before the
// request, and the turn when it has ended.
func TestCheckpoints(t *testing.T) {
	store := memory.New()
	k := agenttest.NewWith(t, agenttest.Options{Store: store})
	durable := func(want session.Type) error {
		log, err := store.Read(t.Context(), "session-1")
		if err != nil {
			return err
		}
		for _, e := range log.Events(0) {
			if e.Type == want {
				return nil
			}
		}
		return fmt.Errorf("no %s is durable", want)
	}
	k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
		if err := durable(session.TypeRequestHeader); err != nil {
			t.Error(err)
		}
		if len(r.Messages) == 1 {
			agenttest.Calls(out, agenttest.Called{ID: "c", Name: "look"})
			return
		}
		agenttest.Say(out, "ok")
	}))
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("look", func(context.Context, *tool.Exec) (string, error) { return "", durable(session.TypeCall) }))}})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	if r := results(t, a)["c"]; r.Error != nil {
		t.Error(text(r))
	}
	if err := durable(session.TypeTurnEnd); err != nil {
		t.Error(err)
	}
}

func TestFailedCheckpoint(t *testing.T) {
	full := errors.New("no space left on device")
	t.Run("beforeTheRequest", func(t *testing.T) {
		store := memory.New()
		k := agenttest.NewWith(t, agenttest.Options{Store: store})
		k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, _ *llm.Request, out *llm.Emitter) {
			t.Error("the request was sent")
			agenttest.Say(out, "x")
		}))
		a := k.Start(agent.Options{})
		store.Fail(full)
		end := k.Run(a, "go")
		store.Fail(nil)
		if end.Kind != session.EndError || end.Error.Code != agent.CodeStore || !strings.Contains(end.Error.Message, "no space left") {
			t.Errorf("end = %+v", end)
		}
	})
	t.Run("beforeABody", func(t *testing.T) {
		store := memory.New()
		k := agenttest.NewWith(t, agenttest.Options{Store: store})
		k.Adapter(agenttest.Provider, once(agenttest.Called{ID: "c1", Name: "act"}, agenttest.Called{ID: "c2", Name: "act"}, agenttest.Called{ID: "c3", Name: "safe"}, agenttest.Called{ID: "c4", Name: "safe"}))
		ran := 0
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{
			tools(define("act", func(context.Context, *tool.Exec) (string, error) {
				ran++
				store.Fail(full)
				return "done", nil
			}), define("safe", func(context.Context, *tool.Exec) (string, error) { ran++; return "", nil }, parallel))}})
		end := k.Run(a, "go")
		store.Fail(nil)
		if end.Kind != session.EndError || end.Error.Code != agent.CodeStore {
			t.Errorf("end = %+v", end)
		}
		if ran != 1 {
			t.Errorf("%d bodies ran", ran)
		}
		got := results(t, a)
		if got["c2"].Error == nil || got["c2"].Error.Code != agent.CodeStore || got["c3"].Error.Code != tool.CodeAbortedBeforeDispatch || got["c4"].Error.Code != tool.CodeAbortedBeforeDispatch {
			t.Errorf("results: %v", outline(a.Session()))
		}
	})
}

func TestToolFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		run  body
		want session.EndKind
	}{
		{"error", func(context.Context, *tool.Exec) (string, error) { return "", errors.New("it broke") }, session.EndCompleted},
		{"panic", func(context.Context, *tool.Exec) (string, error) { panic("it broke") }, session.EndCompleted},
		{"goexit", func(context.Context, *tool.Exec) (string, error) { runtime.Goexit(); return "", nil }, session.EndError},
	} {
		for mode, edit := range map[string]func(*tool.Definition){"exclusive": func(*tool.Definition) {}, "parallel": parallel} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				k := agenttest.New(t)
				k.Adapter(agenttest.Provider, once(agenttest.Called{ID: "c1", Name: "bad"}, agenttest.Called{ID: "c2", Name: "bad"}))
				a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("bad", c.run, edit))}})
				wantEnd(t, k.Run(a, "go"), c.want)
				for id, r := range results(t, a) {
					if r.Error == nil || !r.Message.Content[0].IsError {
						t.Errorf("%s: %+v", id, r)
					}
				}
				if n := len(results(t, a)); n != 2 {
					t.Errorf("%d results", n)
				}
			})
		}
	}
}

func TestConcludeAndContexts(t *testing.T) {
	finish := define("finish", func(_ context.Context, x *tool.Exec) (string, error) { x.ConcludeTurn(); return "bye", nil })
	note := define("note", func(_ context.Context, x *tool.Exec) (string, error) {
		x.DeferContext(tool.Message{Content: []tool.Block{tool.TextBlock("by the way")}})
		return "noted", nil
	})
	t.Run("concludes", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script("steps: [{calls: [{name: finish}]}]")
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(finish)}})
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		if a.Session().Turn().Step != 1 {
			t.Error("the turn went on")
		}
	})
	t.Run("onceTheContextsAreSaid", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script("steps: [{calls: [{name: note}, {name: finish}]}, {text: ok}]")
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(finish, note)}})
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial [finish note]", "model: <note><finish>",
			"call call_1_1 note ", "result call_1_1: noted", "call call_1_2 finish ", "result call_1_2: bye", "/step",
			"step 2", "plugin: by the way", "model: ok", "/step", "/turn completed")
	})
}

// TestResultContent: what the model sees of a result is bounded; images become
// attachments of the session, where the model takes them.
func TestResultContent(t *testing.T) {
	pixel := []byte("\x89PNG not really")
	show := func(blocks func(a *agent.Agent) []tool.Block) (*agenttest.Kit, *agent.Agent) {
		k := agenttest.New(t)
		k.Adapter(agenttest.Provider, once(agenttest.Called{ID: "c", Name: "show"}))
		var a *agent.Agent
		a = k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("show", func(context.Context, *tool.Exec) (string, error) { return "", nil }, func(d *tool.Definition) {
			d.Output.Render = func(context.Context, lossless.Text, lossless.Text) ([]tool.Block, error) { return blocks(a), nil }
		}))}})
		return k, a
	}
	content := func(a *agent.Agent) []message.Block { return results(t, a)["c"].Message.Content[0].Content }
	t.Run("long", func(t *testing.T) {
		long := "begin" + strings.Repeat("é", limits.AgentResult) + "end"
		k, a := show(func(*agent.Agent) []tool.Block { return []tool.Block{tool.TextBlock(long), tool.TextBlock("more")} })
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		got := content(a)
		first, second := string(got[0].Text), string(got[1].Text)
		if len(first) > limits.AgentResult+200 || !strings.HasPrefix(first, "begin") || !strings.HasSuffix(first, "end") || !strings.Contains(first, "bytes are left out") || strings.Contains(first, "�") {
			t.Errorf("%d bytes: %.50q … %.50q", len(first), first, first[len(first)-50:])
		}
		if !strings.Contains(second, "4 of 4 bytes are left out") {
			t.Errorf("the rest: %q", second)
		}
	})
	t.Run("images", func(t *testing.T) {
		k, a := show(func(a *agent.Agent) []tool.Block {
			kept, err := a.Session().Attach("image/png", "x.png", pixel)
			if err != nil {
				t.Error(err)
			}
			named := lossless.Obj(lossless.M("type", lossless.Str("image")), lossless.M("attachment", must(lossless.From(kept))))
			inline := fmt.Sprintf(`{"type":"image","data":%q,"mimeType":"image/png"}`, base64.StdEncoding.EncodeToString([]byte("other")))
			return []tool.Block{{Type: "image", Raw: named.Encode()}, {Type: "image", Raw: lossless.Text(inline)},
				{Type: "image", Raw: lossless.Text(`{"type":"image","data":"?","mimeType":"image/png"}`)}, {Type: "audio", Raw: lossless.Text(`{"type":"audio"}`)}}
		})
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		got := content(a)
		if len(got) != 4 || got[0].Attachment == nil || got[0].Attachment.Name != "x.png" || got[1].Attachment == nil ||
			!strings.Contains(string(got[2].Text), "not shown") || got[3].Text != `{"type":"audio"}` {
			t.Fatalf("content: %+v", got)
		}
		if data, err := a.Session().Attachment(got[1].Attachment.Hash); err != nil || string(data) != "other" {
			t.Errorf("attachment: %q, %v", data, err)
		}
	})
	t.Run("unknownAttachment", func(t *testing.T) {
		raw := `{"type":"image","attachment":{"sha256":"` + strings.Repeat("a", 64) + `","mediaType":"image/png","size":1}}`
		k, a := show(func(*agent.Agent) []tool.Block { return []tool.Block{{Type: "image", Raw: lossless.Text(raw)}} })
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		if got := content(a); len(got) != 1 || !strings.Contains(string(got[0].Text), "an image is not shown") {
			t.Errorf("content: %+v", got)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
