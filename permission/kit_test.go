package permission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }

// rig is a runtime with the real services, the policy, and one session's scope in
// which a tool of the composition acts and plugins are mounted.
type rig struct {
	t        *testing.T
	dir, url string
	root     *cordis.Context
	scoped   *cordis.Context
	scope    *tool.Scope
	policy   *permission.Policy
	registry *tool.Registry
	store    *memory.Store
	session  *session.Session
	waits    *cordis.Fiber

	mu        sync.Mutex
	questions []permission.Question
	answer    func(permission.Question) permission.Answer
}

func newRig(t *testing.T, cfg permission.Config) *rig {
	t.Helper()
	return newRigWith(t, cfg, selfmod.Config{})
}

func newRigWith(t *testing.T, cfg permission.Config, small selfmod.Config) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), store: memory.New(), scope: tool.NewScope("session", nil)}
	r.dir, _ = filepath.EvalSymlinks(r.dir)
	r.write("a.txt", "old\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "page") }))
	t.Cleanup(server.Close)
	r.url = server.URL
	small.Worker = os.Getenv("DSH_TEST_WORKER")
	r.root = cordis.New(cordis.WithDrainLimit(small.DrainLimit()))
	t.Cleanup(func() {
		if _, err := r.root.Fiber().Dispose(r.ctx()); err != nil {
			t.Errorf("dispose the runtime: %v", err)
		}
	})
	r.scoped = tool.WithScope(r.root, r.scope)
	for _, p := range []*cordis.Plugin{permission.Plugin(cfg), tool.Plugin(), timer.Plugin(), fs.Plugin(fs.Config{Roots: []string{r.dir}}),
		bash.Plugin(bash.Config{Dir: r.dir, NoSupervisor: true}), web.Plugin(web.Config{AllowPrivate: true})} {
		r.mount(r.root, p)
	}
	if err := r.waits.Await(r.ctx()); err != nil {
		t.Fatal(err)
	}
	r.mount(r.scoped, selfmod.Plugin(small))
	r.mount(r.scoped, r.actor())
	var err error
	if r.policy, err = permission.Service.Use(r.root); err != nil {
		t.Fatal(err)
	}
	if r.registry, err = tool.Service.Use(r.root); err != nil {
		t.Fatal(err)
	}
	if r.session, err = r.store.Create(t.Context(), session.Meta{ID: "s", Cwd: r.dir}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), selfmodtest.Wait)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) mount(c *cordis.Context, p *cordis.Plugin) {
	r.t.Helper()
	f, err := c.Mount(p, nil)
	if err != nil {
		r.t.Fatalf("mount %s: %v", p.Name, err)
	}
	if p.Name == "permission" { // it waits for tools
		r.waits = f
		return
	}
	if err := f.Await(r.ctx()); err != nil {
		r.t.Fatalf("start %s: %v", p.Name, err)
	}
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) text(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// bind makes the binding of the session; questions are answered by r.answer, which
// denies by default. A nil ask leaves it headless.
func (r *rig) bind(b permission.Binding, headless bool) {
	r.t.Helper()
	b.Session = r.session
	if !headless {
		b.Ask = r.ask
	}
	release, err := r.policy.Bind(r.scope, b)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(release)
}

func (r *rig) ask(_ context.Context, q permission.Question) (permission.Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.questions = append(r.questions, q)
	if r.answer == nil {
		return permission.Answer{}, nil
	}
	return r.answer(q), nil
}

// asked are the questions since the last call.
func (r *rig) asked() []permission.Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.questions
	r.questions = nil
	return list
}

func (r *rig) answers(a permission.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(permission.Question) permission.Answer { return a }
}

// acts are what the tool of the composition, and the mounted one, can do. In
// JavaScript, args.arg is the argument.
var acts = map[string]string{
	"read":   "return await ctx.fs.readText(args.arg)",
	"write":  "await ctx.fs.writeText(args.arg, 'new'); return 'done'",
	"edit":   "await ctx.fs.editText(args.arg, { oldString: 'old', newString: 'new' }); return 'done'",
	"remove": "await ctx.fs.remove(args.arg, { recursive: true }); return 'done'",
	"mkdir":  "await ctx.fs.mkdir(args.arg); return 'done'",
	"bash":   "const r = await ctx.bash.run(args.arg); return r.stdout.text + r.stderr.text",
	"fetch":  "return (await ctx.web.fetch(args.arg)).body.content",
	"search": "return JSON.stringify(await ctx.web.search(args.arg))",
}

// actor is a plugin of the composition with the tool act.
func (r *rig) actor() *cordis.Plugin {
	return &cordis.Plugin{Name: "actor", Inject: cordis.Require("tools", "fs", "bash", "web"), Apply: func(c *cordis.Context, _ any) error {
		registry, _ := tool.Service.Get(c)
		files, _ := fs.Service.Get(c)
		shell, _ := bash.Service.Get(c)
		pages, _ := web.Service.Get(c)
		own := files.For(c)
		params := schema.Must(schema.Parameters(schema.Object(schema.Prop("do", schema.String("what")), schema.Prop("arg", schema.String("of what")))))
		out := schema.Must(schema.Output(schema.String("what came of it")))
		_, err := registry.Register(c, &tool.Definition{Name: "act", Description: "acts", Kind: tool.KindOther, Parameters: params,
			Output: tool.Output{Schema: out, Render: func(_ context.Context, _, v lossless.Text) ([]tool.Block, error) {
				return []tool.Block{tool.TextBlock(string(v))}, nil
			}},
			Execute: func(ctx context.Context, x *tool.Exec) (tool.Outcome, error) {
				var args struct{ Do, Arg string }
				if err := json.Unmarshal(x.Arguments, &args); err != nil {
					return tool.Outcome{}, err
				}
				text, err := "done", error(nil)
				switch path := fs.Path(args.Arg); args.Do {
				case "read":
					text, err = own.ReadText(ctx, path, nil)
				case "write":
					_, err = own.WriteText(ctx, path, "new", nil)
				case "edit":
					_, err = own.EditText(ctx, path, fs.Edit{OldString: "old", NewString: "new"}, nil)
				case "remove":
					err = own.Remove(ctx, path, &fs.RemoveOptions{Recursive: true})
				case "mkdir":
					err = own.Mkdir(ctx, path, nil)
				case "bash":
					var res bash.RunResult
					res, err = shell.Run(ctx, c, bash.Command{Request: bash.Request{Command: args.Arg}})
					text = res.Stdout.Text + res.Stderr.Text
				case "fetch":
					var res web.FetchResult
					res, err = pages.Fetch(ctx, web.FetchRequest{URL: args.Arg})
					text = res.Body.Content
				case "search":
					_, err = pages.Search(ctx, web.SearchRequest{Query: args.Arg})
				}
				if err != nil {
					return tool.Outcome{}, err
				}
				return tool.Outcome{Value: lossless.Str(text).Encode()}, nil
			}})
		return err
	}}
}

// call calls a tool in the session's scope.
func (r *rig) call(name string, args any) *tool.Result {
	return r.callContext(r.ctx(), name, args)
}

func (r *rig) callContext(ctx context.Context, name string, args any) *tool.Result {
	text, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.registry.Execute(ctx, tool.Call{Name: name, CallID: "call-" + name, Arguments: text, Scope: r.scope})
}

// act has the tool of the composition act.
func (r *rig) act(do, arg string) *tool.Result {
	return r.call("act", map[string]string{"do": do, "arg": arg})
}

// plugin is the code of a plugin with one tool for each act, of its name behind
// the prefix.
func plugin(prefix string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "return { name: %q, inject: ['tools', 'fs', 'bash', 'web'], apply(ctx) {\n", prefix)
	for _, do := range slices.Sorted(maps.Keys(acts)) {
		fmt.Fprintf(&b, `harness.registerTool(ctx, harness.defineTool({ name: '%s_%s', description: 'd', parameters: { arg: { type: 'string' } }, timeoutMs: 20000,
			output: { schema: { type: 'string' }, render(_a, v) { return [{ type: 'text', text: v }] } },
			async execute(args) { %s } }))`+"\n", prefix, do, acts[do])
	}
	b.WriteString("} }")
	return b.String()
}

// mounted mounts code and gives its id.
func (r *rig) mounted(code string) string {
	r.t.Helper()
	res := r.call("cordis_mount", map[string]string{"code": code})
	if res.IsError {
		r.t.Fatalf("mount: %s", selfmodtest.Text(res))
	}
	var v struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(res.Value, &v); err != nil {
		r.t.Fatal(err)
	}
	return v.ID
}

// approvals are the events of approvals in the log, one line each.
func (r *rig) approvals() []string {
	var out []string
	for _, e := range r.session.Events(0) {
		switch e.Type {
		case session.TypeApprovalAsked:
			var p session.ApprovalAsked
			_ = json.Unmarshal([]byte(e.Data()), &p)
			out = append(out, fmt.Sprintf("asked %s %q %q", p.Tool, p.Mount, p.Summary))
		case session.TypeApprovalDecided:
			var p session.ApprovalDecided
			_ = json.Unmarshal([]byte(e.Data()), &p)
			out = append(out, fmt.Sprintf("decided %s %s %s", p.Decision, p.Scope, p.Source))
		case session.TypeApprovalRule:
			var p session.ApprovalRule
			_ = json.Unmarshal([]byte(e.Data()), &p)
			out = append(out, fmt.Sprintf("rule %s %s bound=%v", p.Rule, p.Decision, p.SourceHash != ""))
		case session.TypePermissionMode:
			out = append(out, "mode "+r.session.PermissionMode())
		}
	}
	return out
}
