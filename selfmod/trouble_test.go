package selfmod_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// small are limits that a test can afford to pass.
var small = selfmod.Config{VMTimeout: 300 * time.Millisecond, CallTimeout: 1500 * time.Millisecond, MaxCallTimeout: 3 * time.Second}

// How long another call may take meanwhile: what is promised, times what a busy
// machine adds.
const (
	prompt    = 20 * 100 * time.Millisecond
	replacing = 8 * 500 * time.Millisecond
)

// bystander mounts a tool that has nothing to do with anything and calls it all
// the time. What it returns stops that and fails the test if a call failed or
// took longer than limit.
func bystander(r *selfmodtest.Rig, limit time.Duration) (stop func()) {
	r.T.Helper()
	id := r.Mount(selfmodtest.Tool("bystander", "return 'here'"))
	done, ended := make(chan struct{}), make(chan struct{})
	var slowest time.Duration
	var failure string
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
			began := time.Now()
			res := r.Call("bystander", nil)
			slowest = max(slowest, time.Since(began))
			if res.IsError && failure == "" {
				failure = selfmodtest.Text(res)
			}
		}
	}()
	return func() {
		r.T.Helper()
		close(done)
		<-ended
		if failure != "" {
			r.T.Errorf("another mount's tool failed meanwhile: %s", failure)
		}
		if slowest > limit {
			r.T.Errorf("another mount's tool took %v meanwhile, more than %v", slowest, limit)
		}
		r.Unmount(id)
	}
}

// answers demands that the three tools and the registry answer in time.
func answers(r *selfmodtest.Rig, limit time.Duration) {
	r.T.Helper()
	began := time.Now()
	r.Inspect("", "")
	if d := time.Since(began); d > limit {
		r.T.Errorf("cordis_inspect took %v, more than %v", d, limit)
	}
}

// goTool registers a tool of the composition.
func goTool(r *selfmodtest.Rig, name string, run func(ctx context.Context, exec *tool.Exec) (string, error)) {
	r.T.Helper()
	goToolOn(r, r.Root, name, run)
}

func goToolOn(r *selfmodtest.Rig, c *cordis.Context, name string, run func(ctx context.Context, exec *tool.Exec) (string, error)) {
	r.T.Helper()
	_, err := r.Registry.Register(c, &tool.Definition{
		Name: name, Description: "for a test", Kind: tool.KindExecute,
		Parameters: schema.Must(schema.Parameters(schema.Object())),
		Output: tool.Output{Schema: schema.Must(schema.Output(schema.String(""))), Render: func(_ context.Context, _, v lossless.Text) ([]tool.Block, error) {
			var s string
			err := json.Unmarshal(v, &s)
			return []tool.Block{tool.TextBlock(s)}, err
		}},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			text, err := run(ctx, exec)
			return tool.Outcome{Value: lossless.Str(text).Encode()}, err
		},
	})
	if err != nil {
		r.T.Fatalf("register %s: %v", name, err)
	}
}

// nested calls a tool from within a call.
func nested(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, name string, args map[string]string) (string, error) {
	if args == nil {
		args = map[string]string{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	res := r.Registry.Execute(ctx, tool.Call{Name: name, Arguments: text, Parent: exec})
	if res.IsError {
		return "", fmt.Errorf("%s: %s", name, selfmodtest.Text(res))
	}
	return selfmodtest.Text(res), nil
}

// within fails the test when f takes longer than limit.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if d := time.Since(began); d > limit {
		t.Errorf("%s took %v, more than %v", what, d, limit)
	}
}

// at runs all functions at once and waits for them.
func at(fns ...func()) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, f := range fns {
		wg.Go(func() {
			<-start
			f()
		})
	}
	close(start)
	wg.Wait()
}

// provider is a plugin that provides a service with one method who().
func provider(name, service, says string) string {
	return fmt.Sprintf(`return { name: %q, apply(ctx) { ctx.provide(%q, { who: () => %q }) } }`, name, service, says)
}

// asks is a plugin whose tool of that name asks the service who it is.
func asks(name, service string) string {
	return withTool(name, fmt.Sprintf("[%q]", service), "return ctx["+quote(service)+"].who()")
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// withTool is a plugin with a tool of its own name that returns JSON or a string;
// before are further lines of apply.
func withTool(name, inject, body string, before ...string) string {
	return fmt.Sprintf(`return {
  name: %[1]q, inject: %[2]s,
  apply(ctx) {
    %[4]s
    harness.registerTool(ctx, harness.defineTool({
      name: %[1]q, description: 'for a test', parameters: { x: { type: 'json' } },
      output: { schema: { type: 'json' }, render(_a, v) { return [{ type: 'text', text: typeof v === 'string' ? v : JSON.stringify(v) }] } },
      async execute(args, exec) { %[3]s },
    }))
  },
}`, name, inject, body, strings.Join(before, "\n    "))
}

// stateOf is one line of the temporary section.
func stateOf(r *selfmodtest.Rig, id string) string {
	r.T.Helper()
	for line := range strings.Lines(r.Inspect("temporary", "")) {
		if strings.HasPrefix(line, "- Temporary Plugin "+id+":") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// hasAll demands that a text has all parts.
func hasAll(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("the text lacks %q:\n%s", p, text)
		}
	}
}

// eventuallyHas waits until a text has all parts.
func eventuallyHas(r *selfmodtest.Rig, what string, text func() string, parts ...string) {
	r.T.Helper()
	r.Eventually(what, func() (string, bool) {
		now := text()
		for _, p := range parts {
			if !strings.Contains(now, p) {
				return now + "\nlacks " + p, false
			}
		}
		return now, true
	})
}
