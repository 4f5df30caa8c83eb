package permission_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

// TestMountCannotWiden: a mounted listener that allows changes nothing, one that
// denies or asks does.
func TestMountCannotWiden(t *testing.T) {
	listener := func(event, answer string, options string) string {
		return "return { name: 'l', apply(ctx) { ctx.on('" + event + "', async (x, next) => { " + answer + " }" + options + ") } }"
	}
	tests := []struct {
		name, code string
		mode       permission.Mode
		want       string // allow, ask, or part of a denial
	}{
		{"allows", listener("bash/run-intent", "return { kind: 'allow' }", ""), permission.Ask, "ask"},
		{"allows-first", listener("bash/run-intent", "return { kind: 'allow' }", ", { prepend: true }"), permission.Ask, "ask"},
		{"allows-after-next", listener("bash/run-intent", "await next(); return { kind: 'allow' }", ", { prepend: true }"), permission.ReadOnly, "read-only"},
		{"allows-the-call", listener("tools/pre-execute", "return { kind: 'allow' }", ", { prepend: true }"), permission.Ask, "ask"},
		{"denies", listener("bash/run-intent", "return { kind: 'deny', reason: 'mine' }", ""), permission.Full, "mine"},
		{"asks", listener("bash/run-intent", "return { kind: 'ask', reason: 'look' }", ""), permission.Full, "ask"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, permission.Config{})
			r.mounted(tt.code)
			r.bind(permission.Binding{Mode: tt.mode}, false)
			res := r.act("bash", "touch t")
			text, n := selfmodtest.Text(res), len(r.asked())
			switch tt.want {
			case "ask":
				if n != 1 || !res.IsError {
					t.Errorf("%d questions: %s", n, text)
				}
			default:
				if n > 0 || !res.IsError || !strings.Contains(text, tt.want) {
					t.Errorf("%d questions: %s", n, text)
				}
			}
		})
	}
}

// TestScopes: a session's policy binds what is in its scope and below, nothing else;
// its listeners hear nothing of others; without a binding the configuration decides.
func TestScopes(t *testing.T) {
	r := newRig(t, permission.Config{Mode: permission.ReadOnly})
	heard := 0
	_, err := bash.RunIntent.On(r.scoped, func(ctx context.Context, _ bash.Run, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		heard++
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(s *tool.Scope) string {
		shell, _ := bash.Service.Get(r.root)
		ctx := tool.WithActor(r.ctx(), tool.Actor{Scope: s})
		_, err := shell.Run(ctx, r.root, bash.Command{Request: bash.Request{Command: "touch t"}})
		if err != nil {
			return err.Error()
		}
		return ""
	}
	if got := run(r.scope); !strings.Contains(got, "read-only") {
		t.Errorf("before the binding: %q", got)
	}
	r.bind(permission.Binding{Mode: permission.Full}, false)
	heard = 0
	other := tool.NewScope("other", nil)
	for _, tt := range []struct {
		name    string
		scope   *tool.Scope
		allowed bool
		heard   int
	}{{"bound", r.scope, true, 1}, {"below", tool.NewScope("below", r.scope), true, 1}, {"other", other, false, 0}, {"global", nil, false, 0}} {
		heard = 0
		if got := run(tt.scope); (got == "") != tt.allowed || heard != tt.heard {
			t.Errorf("%s: %q, heard %d times", tt.name, got, heard)
		}
	}
	if m := r.policy.Mode(r.scope); m != permission.Full {
		t.Errorf("mode %s", m)
	}
	if err := r.policy.SetMode(r.scope, permission.ReadOnly, "user"); err != nil {
		t.Fatal(err)
	}
	if got := run(r.scope); !strings.Contains(got, "read-only") || r.session.PermissionMode() != "read-only" {
		t.Errorf("after the mode changed: %q", got)
	}
	if err := r.policy.SetMode(r.scope, "loose", ""); err == nil {
		t.Error("an unknown mode was set")
	}
}

func TestBind(t *testing.T) {
	r := newRig(t, permission.Config{})
	if _, err := r.policy.Bind(nil, permission.Binding{}); err == nil {
		t.Error("the global layer was bound")
	}
	if _, err := r.policy.Bind(r.scope, permission.Binding{Mode: "loose"}); err == nil {
		t.Error("an unknown mode was bound")
	}
	release, err := r.policy.Bind(r.scope, permission.Binding{Session: r.session})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.policy.Bind(r.scope, permission.Binding{}); err == nil || !strings.Contains(err.Error(), "has a binding") {
		t.Errorf("bound twice: %v", err)
	}
	release()
	release()
	closed, err := r.store.Create(t.Context(), session.Meta{ID: "closed", Cwd: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(r.ctx()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.policy.Bind(r.scope, permission.Binding{Session: closed}); err == nil {
		t.Error("a session that takes no events was bound")
	}
	r.bind(permission.Binding{}, true)
}

// TestEnv: variables that a plugin sets for a command make it more than reading.
func TestEnv(t *testing.T) {
	r := newRig(t, permission.Config{})
	r.mounted(`return { name: 'e', inject: ['tools', 'bash'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'e', description: 'd', parameters: { name: { type: 'string' } },
			output: { schema: { type: 'string' }, render(_a, v) { return [{ type: 'text', text: v }] } },
			async execute(args) { return (await ctx.bash.run('git --version', { env: { [args.name]: 'x' } })).stdout.text } }))
	} }`)
	r.bind(permission.Binding{Allow: parse(t, "tool(e)", "bash(git *)")}, false)
	for name, asks := range map[string]int{"LC_ALL": 0, "PATH": 1, "GIT_EXTERNAL_DIFF": 1, "BASH_FUNC_git%%": 1} {
		res := r.call("e", map[string]string{"name": name})
		if list := r.asked(); len(list) != asks || asks > 0 && (list[0].Remember != "" || !strings.Contains(list[0].Detail, name)) {
			t.Errorf("%s: %d questions, %s, %+v", name, len(list), selfmodtest.Text(res), list)
		}
	}
}

// TestMountByItself: what a plugin does outside of every call obeys the mode too, and
// only so many of its denials are logged.
func TestMountByItself(t *testing.T) {
	r := newRig(t, permission.Config{})
	r.mounted(fmt.Sprintf(`return { name: 'x', inject: ['fs'], apply(ctx) {
		ctx.on('tools/result', async ({ name }) => { if (name === 'cordis_mount') return; for (let i = 0; i < %d; i++) await ctx.fs.writeText('w.txt', 'x').catch(() => {}) })
	} }`, 10))
	r.bind(permission.Binding{Mode: permission.ReadOnly}, false)
	r.act("read", "a.txt")
	denied := 0
	for e := range r.session.Follow(r.ctx(), 0) {
		if e.Type != session.TypeApprovalDecided {
			continue
		}
		if denied++; denied == 10 {
			break
		}
	}
	if denied != 10 || r.text("w.txt") != "" {
		t.Errorf("%d denials, file %q", denied, r.text("w.txt"))
	}
	for _, line := range r.approvals() {
		if strings.HasPrefix(line, "asked") && !strings.Contains(line, `"dyn-1 (x)"`) {
			t.Errorf("not in the plugin's name: %s", line)
		}
	}
	if len(r.asked()) > 0 {
		t.Error("read-only asked")
	}
}
