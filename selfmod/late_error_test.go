package selfmod_test

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// What a mount throws when nobody waits is its own, shown and never fatal.
func TestLateErrors(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	for _, c := range []struct{ name, start, entry string }{
		{"timer", "ctx.setTimeout(function lateTimer() { throw new Error('late boom') }, 1)", "lateTimer"},
		{"interval", "ctx.setInterval(function lateTick() { throw new Error('late boom') }, 5)", "lateTick"},
		{"async_timer", "ctx.setTimeout(async function lateTimer() { await ctx.timeout(1); throw new Error('late boom') }, 1)", "lateTimer"},
		{"rejection", "Promise.reject(new Error('late boom'))", ""},
		{"after_await", "(async () => { await ctx.timeout(1); throw new Error('late boom') })()", ""},
		{"listener", "ctx.on('tools/result', () => { throw new Error('late boom') })", "tools/result"},
		{"async_listener", "ctx.on('tools/result', async () => { await ctx.timeout(1); throw new Error('late boom') })", "tools/result"},
		{"microtask", "queueMicrotask(() => { throw new Error('late boom') })", ""},
		{"debounce", "ctx.debounce(function lateCall() { throw new Error('late boom') }, 1)()", "lateCall"},
		{"ticks", "(async () => { for await (const i of ctx.interval(1)) throw new Error('late boom') })()", ""},
		{"tool_leaves_it", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			stop := bystander(r, prompt)
			name := "late_" + c.name
			body := "return 'fine'"
			if c.start == "" {
				body = "ctx.setTimeout(() => { throw new Error('late boom') }, 1); return 'fine'"
			}
			id := r.Mount(selfmodtest.Tool(name, body, c.start))
			r.Works(r.Call(name, nil), "fine")
			eventuallyHas(r, "the late error", func() string { return r.Inspect("temporary", id) }, "late boom", c.entry, "cordis-mount-"+id+".js:")
			r.Works(r.Call(name, nil), "fine")
			hasAll(t, stateOf(r, id), "running", "errors: ")
			if text := r.Inspect("temporary", id); strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
				t.Errorf("our own stack is shown:\n%s", text)
			}
			stop()
			hasAll(t, r.Unmount(id), "was unmounted and removed")
		})
	}
}

// A rejection that is handled a little later was no error.
func TestLateRejectionHandledAfterAll(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	id := r.Mount(selfmodtest.Tool("handle", "kept.catch(() => {}); return 'handled'", "const kept = Promise.reject(new Error('not for ever'))"))
	eventuallyHas(r, "the rejection", func() string { return r.Inspect("temporary", id) }, "last errors", "not for ever at apply")
	r.Works(r.Call("handle", nil), "handled")
	r.Eventually("the withdrawal", func() (string, bool) {
		text, _, _ := strings.Cut(r.Inspect("temporary", id), "\nSource")
		return text, !strings.Contains(text, "not for ever")
	})
	if line := stateOf(r, id); strings.Contains(line, "errors: ") {
		t.Errorf("a handled rejection still counts as an error: %s", line)
	}
}

// Errors without end stay within their bounds.
func TestLateErrorsFlood(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	id := r.Mount(selfmodtest.Tool("flood", "for (let i = 0; i < 2000; i++) Promise.reject(new Error('flood ' + i)); return 'out'"))
	r.Works(r.Call("flood", nil), "out")
	eventuallyHas(r, "some of the errors", func() string { return r.Inspect("temporary", id) }, "flood ")
	if n := len(r.Inspect("temporary", id)); n > 8000 {
		t.Errorf("the report has %d bytes", n)
	}
	r.Works(r.Call("flood", nil), "out")
	stop()
	r.Unmount(id)
}
