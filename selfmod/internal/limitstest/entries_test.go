package limitstest

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// way is one way into a plugin. Names in it are made unique by n, so that many
// can be in one world.
type way struct {
	name string
	// code is the plugin; the trouble stands in a function that async is before.
	code func(n, async, trouble string) string
	// enter goes the way in and returns what is said of it.
	enter func(w *world, n, id string) string
	// entry is how the error names the way.
	entry func(n string) string
	// body and apply: the mount itself fails.
	mounts bool
	// sync ways do not wait for promises.
	sync bool
}

func fixed(s string) func(string) string { return func(string) string { return s } }

// toolWith is a plugin with a tool that has further members.
func toolWith(n, execute, render, members string) string {
	if render == "" {
		render = "render(_a, v) { return [{ type: 'text', text: v }] }"
	}
	return fmt.Sprintf(`return {
  name: 'culprit%[1]s', inject: ['tools', 'timer'],
  apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'culprit%[1]s', description: 'd', parameters: {},
      output: { schema: { type: 'string' }, %[3]s },
      async execute(args, exec) { %[2]s; return 'done' },
      %[4]s
    }))
  },
}`, n, execute, render, members)
}

func listening(n, event, params, async, trouble string) string {
	guard := ""
	if strings.Contains(params, "next") {
		guard = fmt.Sprintf("if (exec.name !== 'victim%s') return next(); ", n)
		if event == "tools/post-execute" {
			params = "exec, result, next"
		}
	}
	return fmt.Sprintf("return { name: 'culprit%s', apply(ctx) { ctx.on('%s', %s(%s) => { %s%s }) } }", n, event, async, params, guard, trouble)
}

// victim registers a Go tool.
func (w *world) victim(name string) *cordis.Handle {
	w.T.Helper()
	h, err := w.Registry.Register(w.Root, &tool.Definition{
		Name: name, Description: "d", Parameters: schema.Must(schema.Parameters(schema.Object())),
		Output: tool.Output{
			Schema: schema.Must(schema.Output(schema.Any(""))),
			Render: func(context.Context, lossless.Text, lossless.Text) ([]tool.Block, error) { return nil, nil },
		},
		Execute: func(context.Context, *tool.Exec) (tool.Outcome, error) {
			return tool.Outcome{Value: []byte("1")}, nil
		},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return h
}

// around calls a Go tool that the listener stands before.
func around(w *world, n, _ string) string {
	h := w.victim("victim" + n)
	defer func() { _ = h.Dispose(context.Background()) }()
	return w.Fails(w.Call("victim"+n, nil))
}

// reported waits until inspect says something of the mount.
func reported(w *world, _, id string) string { return w.says(id, "last errors") }

func call(w *world, n, _ string) string { return w.Fails(w.Call("culprit"+n, nil)) }

// mode is what a tool says of overlapping.
func (w *world) mode(name string) string {
	if w.Registry.ExecutionMode(w.Context(), tool.Call{Name: name}) == tool.Exclusive {
		return "exclusive"
	}
	return "parallel"
}

func named(n string) string { return fmt.Sprintf("tool %q", "culprit"+n) }

// ways are all ways into a plugin.
var ways = []way{
	{
		name: "body", mounts: true, entry: fixed("the code"),
		code: func(_, async, trouble string) string { return trouble + "; return () => {}" },
	},
	{
		name: "apply", mounts: true, entry: fixed("apply"),
		code: func(n, async, trouble string) string {
			return fmt.Sprintf("return { name: 'culprit%s', %s apply(ctx) { %s } }", n, async, trouble)
		},
	},
	{
		name: "emit_listener", entry: fixed("the listener of tools/change"), enter: func(w *world, n, id string) string {
			if err := w.victim("victim" + n).Dispose(context.Background()); err != nil {
				w.T.Error(err)
			}
			return reported(w, n, id)
		},
		code: func(n, async, trouble string) string {
			return fmt.Sprintf("return { name: 'culprit%[1]s', apply(ctx) { ctx.on('tools/change', %[2]s(change) => { if (change.name !== 'victim%[1]s' || change.action !== 'registered') return; %[3]s }) } }", n, async, trouble)
		},
	},
	{
		name: "pre_execute_listener", entry: fixed("the listener of tools/pre-execute"), enter: around,
		code: func(n, async, trouble string) string {
			return listening(n, "tools/pre-execute", "exec, next", async, trouble)
		},
	},
	{
		name: "execute_listener", entry: fixed("the listener of tools/execute"), enter: around,
		code: func(n, async, trouble string) string {
			return listening(n, "tools/execute", "exec, next", async, trouble)
		},
	},
	{
		name: "post_execute_listener", entry: fixed("the listener of tools/post-execute"), enter: around,
		code: func(n, async, trouble string) string {
			return listening(n, "tools/post-execute", "exec, result, next", async, trouble)
		},
	},
	{
		name: "tool", entry: named, enter: call,
		code: func(n, _, trouble string) string { return toolWith(n, trouble, "", "") },
	},
	{
		name: "render", entry: func(n string) string { return "output.render of " + named(n) }, enter: call,
		code: func(n, async, trouble string) string { return toolWith(n, "", async+" render() { "+trouble+" }", "") },
	},
	{
		name: "presentation_meta", entry: func(n string) string { return "output.presentationMeta of " + named(n) }, enter: call,
		code: func(n, async, trouble string) string {
			return toolWith(n, "", "render() { return [] }, "+async+" presentationMeta() { "+trouble+" }", "")
		},
	},
	{
		name: "continuation", entry: named, enter: call,
		code: func(n, _, trouble string) string { return toolWith(n, "await ctx.timeout(1); "+trouble, "", "") },
	},
	{
		name: "concurrency", sync: true, entry: func(n string) string { return "isConcurrencySafe of " + named(n) },
		code: func(n, async, trouble string) string {
			return toolWith(n, "", "", async+" isConcurrencySafe() { "+trouble+" }")
		},
		enter: func(w *world, n, id string) string {
			if mode := w.Registry.ExecutionMode(w.Context(), tool.Call{Name: "culprit" + n}); mode != tool.Exclusive {
				w.T.Errorf("mode %v", mode)
			}
			return reported(w, n, id)
		},
	},
	{
		name: "present_call", entry: func(n string) string { return "presentCall of " + named(n) },
		code: func(n, async, trouble string) string {
			return toolWith(n, "", "", async+" presentCall() { "+trouble+" }")
		},
		enter: func(w *world, n, id string) string {
			if c := w.Registry.PresentCall(w.Context(), "culprit"+n, nil, nil); c == nil || c.Generic == nil {
				w.T.Errorf("card %+v", c)
			}
			return reported(w, n, id)
		},
	},
	{
		name: "present_result", entry: func(n string) string { return "presentResult of " + named(n) },
		code: func(n, async, trouble string) string {
			return toolWith(n, "", "", async+" presentResult() { "+trouble+" }")
		},
		enter: func(w *world, n, id string) string {
			if c := w.Registry.PresentResult(w.Context(), "culprit"+n, nil, nil, &tool.Result{Value: []byte(`"x"`)}); c == nil || c.Generic == nil {
				w.T.Errorf("card %+v", c)
			}
			return reported(w, n, id)
		},
	},
	{
		name: "finalize_content", entry: func(n string) string { return "finalizeContent of " + named(n) },
		code: func(n, async, trouble string) string {
			return toolWith(n, "", "", async+" finalizeContent() { "+trouble+" }")
		},
		enter: func(w *world, n, id string) string {
			w.Works(w.Call("culprit"+n, nil), "done")
			return reported(w, n, id)
		},
	},
	{
		name: "service_member", entry: fixed("service member"),
		code: func(n, async, trouble string) string {
			return fmt.Sprintf("return { name: 'culprit%[1]s', apply(ctx) { ctx.provide('culprit%[1]s', { %[2]s member() { %[3]s } }) } }", n, async, trouble)
		},
		enter: func(w *world, n, id string) string {
			user := w.Mount(strings.Replace(selfmodtest.Tool("user"+n, "return String(await ctx.culprit"+n+".member())"), "['tools'", "['culprit"+n+"', 'tools'", 1))
			defer w.Unmount(user)
			return w.Fails(w.Call("user"+n, nil))
		},
	},
	{
		name: "timeout", entry: fixed("the callback of ctx.setTimeout"), enter: reported,
		code: func(n, async, trouble string) string {
			return fmt.Sprintf("return { name: 'culprit%s', inject: ['timer'], apply(ctx) { ctx.setTimeout(%s() => { %s }, 1) } }", n, async, trouble)
		},
	},
	{
		name: "interval", entry: fixed("the callback of ctx.setInterval"), enter: reported,
		code: func(n, async, trouble string) string {
			return fmt.Sprintf("return { name: 'culprit%s', inject: ['timer'], apply(ctx) { const stop = ctx.setInterval(%s() => { stop(); %s }, 1) } }", n, async, trouble)
		},
	},
	{
		name: "disposer", entry: fixed("the disposer of"),
		code: func(n, async, trouble string) string {
			return fmt.Sprintf("return { name: 'culprit%s', apply(ctx) { ctx.effect(() => %s() => { %s }) } }", n, async, trouble)
		},
		enter: func(w *world, _, id string) string { return w.Unmount(id) },
	},
	{
		name: "returned_disposer", entry: fixed("the disposer of apply"),
		code: func(n, async, trouble string) string {
			return fmt.Sprintf("return { name: 'culprit%s', apply(ctx) { return %s() => { %s } } }", n, async, trouble)
		},
		enter: func(w *world, _, id string) string { return w.Unmount(id) },
	},
}
