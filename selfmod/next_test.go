package selfmod_test

import (
	"context"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// brief lets an entry take half of what a slow step of these tests takes.
var brief = selfmod.Config{VMTimeout: 200 * time.Millisecond, CallTimeout: 400 * time.Millisecond, MaxCallTimeout: 3 * time.Second}

const slowStep = 800 * time.Millisecond

// slowRest makes the rest of a waterfall take longer than a listener may.
func slowRest[A, R any](ctx context.Context, arg A, next func(context.Context) (R, error), slow bool) (R, error) {
	if slow {
		select {
		case <-time.After(slowStep):
		case <-ctx.Done():
		}
	}
	return next(ctx)
}

// The time that a listener spends in next() is not its own: what comes next has
// limits of its own. The time before and after it is.
func TestTimeInNext(t *testing.T) {
	t.Parallel()
	for _, event := range []struct{ name, params string }{
		{"tools/pre-execute", "exec, next"},
		{"tools/execute", "exec, next"},
		{"tools/post-execute", "exec, result, next"},
	} {
		for _, c := range []struct{ name, body, fails string }{
			{"awaited", "const v = await next(); return v", ""},
			{"returned", "return next()", ""},
			{"raced", "return Promise.race([next(), new Promise(() => {})])", ""},
			{"before", "await new Promise(() => {}); return next()", "400 ms"},
			{"after", "const v = await next(); await new Promise(() => {}); return v", "400 ms"},
			{"endless_after", "const v = await next(); for (;;) {}", "200 ms"},
			{"twice", "await next(); return next()", "twice"},
		} {
			t.Run(event.name[len("tools/"):]+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				r := selfmodtest.New(t, brief)
				goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { return "x", nil })
				slow := func(e *tool.Exec, name string) bool { return e.Name == "go" && event.name == name }
				id := r.Mount("return { name: 'ear', apply(ctx) { for (let i = 0; i < 2; i++) ctx.on('" + event.name + "', async (" + event.params + ") => { if (exec.name !== 'go') return next(); " + c.body + " }) } }")
				var err error
				switch event.name {
				case "tools/pre-execute":
					_, err = tool.PreExecute.On(r.Root, func(ctx context.Context, e *tool.Exec, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
						return slowRest(ctx, e, next, slow(e, event.name))
					})
				case "tools/execute":
					_, err = tool.AroundExecute.On(r.Root, func(ctx context.Context, e *tool.Exec, next func(context.Context) (*tool.Result, error)) (*tool.Result, error) {
						return slowRest(ctx, e, next, slow(e, event.name))
					})
				case "tools/post-execute":
					_, err = tool.PostExecute.On(r.Root, func(ctx context.Context, f tool.Finished, next func(context.Context) (tool.PostDecision, error)) (tool.PostDecision, error) {
						return slowRest(ctx, f, next, slow(f.Exec, event.name))
					})
				}
				if err != nil {
					t.Fatal(err)
				}
				if res := r.Call("go", nil); c.fails == "" {
					r.Works(res, "x")
				} else {
					r.Fails(res, c.fails)
				}
				r.Unmount(id)
			})
		}
	}
}

// An unmount waits for a call that is inside next() as for any other.
func TestUnmountInsideNext(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, brief)
	began, goOn := make(chan struct{}), make(chan struct{})
	goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { close(began); <-goOn; return "x", nil })
	id := r.Mount("return { name: 'ear', apply(ctx) { ctx.on('tools/execute', async (exec, next) => { if (exec.name !== 'go') return next(); const { content, ...res } = await next(); return { ...res, value: res.value + ' and more' } }) } }")
	done := make(chan *tool.Result, 1)
	go func() { done <- r.Call("go", nil) }()
	<-began
	unmounted := make(chan string, 1)
	go func() { unmounted <- selfmodtest.Text(r.Call("cordis_unmount", map[string]string{"id": id})) }()
	eventuallyHas(r, "the unmount", func() string { return r.Inspect("temporary", "") }, "unloading")
	close(goOn)
	r.Works(<-done, "x and more")
	if text := <-unmounted; text == "" {
		t.Error("no receipt")
	}
}

// A call that the unmount did not wait for any longer is not the listener's any
// more: what next() returns is its result.
func TestUnmountBeforeNextReturns(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, brief)
	began, goOn := make(chan struct{}), make(chan struct{})
	goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { close(began); <-goOn; return "x", nil })
	id := r.Mount("return { name: 'ear', apply(ctx) { ctx.on('tools/execute', async (exec, next) => { if (exec.name !== 'go') return next(); const { content, ...res } = await next(); return { ...res, value: res.value + ' and more' } }) } }")
	done := make(chan *tool.Result, 1)
	go func() { done <- r.Call("go", nil) }()
	<-began
	within(t, replacing, "the unmount", func() { hasAll(t, r.Unmount(id), "1 call") })
	close(goOn)
	res := <-done
	if text := r.Works(res, "x"); text != "x" {
		t.Errorf("the result is %q", text)
	}
}
