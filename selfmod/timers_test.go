package selfmod_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// Every timer verb does what its name says.
func TestTimerVerbs(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	for _, c := range []struct{ name, body, want string }{
		{"setTimeout", "return await new Promise((ok) => ctx.setTimeout((a, b) => ok(a + b), 5, 'a', 'b'))", "ab"},
		{"timeout_callback", "return await new Promise((ok) => ctx.timeout(() => ok('fired'), 5))", "fired"},
		{"timeout_promise", "const t = Date.now(); await ctx.timeout(30); return Date.now() - t >= 29 ? 'slept' : 'too short'", "slept"},
		{"timeout_zero", "await ctx.timeout(0); return 'slept'", "slept"},
		{"order", "const out = []; await Promise.all([40, 5, 20].map((ms) => ctx.timeout(ms).then(() => out.push(ms)))); return out.join()", "5,20,40"},
		{"setInterval", "let n = 0; return await new Promise((ok) => { const off = ctx.setInterval(() => { if (++n === 3) { off(); ok('three') } }, 2) })", "three"},
		{"interval_iterator", "const out = []; for await (const i of ctx.interval(2)) { out.push(i); if (out.length === 3) break } return String(out.length)", "3"},
		{"interval_return", "const it = ctx.interval(2); await it.next(); const end = await it.return('v'); const after = await it.next(); return end.value + end.done + after.done", "vtruetrue"},
		{"clearTimeout", "let fired = false; const h = ctx.setTimeout(() => { fired = true }, 5); ctx.clearTimeout(h); await ctx.timeout(20); return String(fired)", "false"},
		{"clearInterval", "let n = 0; const h = ctx.setInterval(() => { n++ }, 1); await ctx.timeout(20); ctx.clearInterval(h); const was = n; await ctx.timeout(20); return String(was > 0 && n === was)", "true"},
		{"handle_is_a_disposer", "let fired = false; const h = ctx.setTimeout(() => { fired = true }, 5); await h(); await h(); await ctx.timeout(20); return String(fired)", "false"},
		{"throttle", "const got = []; const f = ctx.throttle((x) => got.push(x), 30); f(1); f(2); f(3); const first = got.join(); await ctx.timeout(80); return first + '|' + got.join()", "1|1,3"},
		{"throttle_no_trailing", "const got = []; const f = ctx.throttle((x) => got.push(x), 20, true); f(1); f(2); await ctx.timeout(60); return got.join()", "1"},
		{"throttle_disposed", "const got = []; const f = ctx.throttle((x) => got.push(x), 20); f(1); f(2); f.dispose(); await ctx.timeout(60); return got.join()", "1"},
		{"debounce", "const got = []; const f = ctx.debounce((x) => got.push(x), 20); f(1); await ctx.timeout(5); f(2); f(3); const before = got.length; await ctx.timeout(80); return before + '|' + got.join()", "0|3"},
		{"debounce_disposed", "const got = []; const f = ctx.debounce((x) => got.push(x), 5); f(1); f.dispose(); await ctx.timeout(30); return String(got.length)", "0"},
		{"injected_timer", "await ctx.timer.timeout(1); return typeof ctx.get('timer').setInterval", "function"},
		{"async_callback_does_not_overlap", "let now = 0, most = 0, n = 0; const off = ctx.setInterval(async () => { most = Math.max(most, ++now); await ctx.timeout(10); now--; n++ }, 1); await ctx.timeout(100); off(); return most + ',' + (n > 1)", "1,true"},
		{"bad_delay", "return ['x', NaN, -1, Infinity, 2147483648].map((ms) => { try { ctx.setTimeout(() => {}, ms); return 'taken' } catch (e) { return e.name } }).join()", "TypeError,TypeError,TypeError,TypeError,RangeError"},
		{"bad_callback", "try { ctx.setTimeout('code', 1) } catch (e) { return e.message }", "ctx.setTimeout(fn, ms) takes a function first"},
		{"too_many", "const all = []; try { for (let i = 0; i < 300; i++) all.push(ctx.setTimeout(() => {}, 1e6)) } catch (e) { for (const off of all) off(); return all.length + ' ' + e.message }", "200 timers"},
		{"too_many_sleeps", "let n = 0, text = ''; const all = []; for (let i = 0; i < 300; i++) all.push(ctx.timeout(500).catch((e) => { n++; text = e.message })); await Promise.all(all); return n + ' ' + text", "100 a temporary Plugin may have 200 timers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			name := "timer_" + c.name
			id := r.Mount(withTool(name, "['timer']", c.body))
			if got := selfmodtest.Text(r.Call(name, nil)); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			r.Unmount(id)
		})
	}
}

// Without the service the verbs say what to declare.
func TestTimersNeedTheService(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	for _, verb := range []string{"setTimeout", "setInterval", "timeout", "interval", "throttle", "debounce", "clearTimeout"} {
		r.MountFails("return (ctx) => { ctx."+verb+"(() => {}, 1) }", "ctx."+verb, "inject: ['timer']")
	}
	r.MountFails("setTimeout(() => {}, 1)", "setTimeout is not available", "inject: ['timer']")
}

// Timers end with their run: nothing fires any more, waits are rejected.
func TestTimersEndWithTheMount(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	p := r.Mount(provider("p", "needed", "x"))
	id := r.Mount(`return { name: 'clock', inject: ['timer', 'needed'], apply(ctx) {
    const say = (what) => console.log(what)
    ctx.setInterval(() => say('tick'), 5)
    ctx.timeout(1e6).catch((e) => say('timeout: ' + e.message))
    ;(async () => { try { for await (const i of ctx.interval(1e6)); } catch (e) { say('interval: ' + e.message) } })()
    const later = ctx.debounce(() => say('debounced'), 1e6); later()
    const t = ctx.throttle(() => say('throttled'), 1e6); t(); t()
    ctx.effect(() => () => { try { later(); say('still there') } catch (e) { say(e.code) } })
    say('up')
  } }`)
	eventuallyHas(r, "ticks", func() string { return strings.Join(linesOf(r, id), "\n") }, "tick\ntick\ntick")
	for range 2 {
		// What this run prints; the lines of the one before are behind "up".
		said := func() string {
			text := strings.Join(linesOf(r, id), "\n")
			return text[strings.LastIndex(text, "up\n")+1:]
		}
		r.Unmount(p)
		hasAll(t, stateOf(r, id), "pending")
		eventuallyHas(r, "the rejections", said, "timeout: Context has been disposed", "interval: Context has been disposed", "still there")
		quiet := len(linesOf(r, id))
		r.Works(r.Call("cordis_inspect", nil))
		if now := linesOf(r, id); len(now) != quiet {
			t.Errorf("it printed after its run had ended: %q", now[quiet:])
		}
		p = r.Mount(provider("p", "needed", "x"))
		eventuallyHas(r, "ticks again", func() string { return strings.Join(linesOf(r, id)[quiet:], "\n") }, "up", "tick\ntick")
	}
	hasAll(t, r.Unmount(id), "was unmounted")
	if faults := r.Console(); strings.Contains(strings.Join(faults, "\n"), "uncaught") {
		t.Errorf("an end is no error: %q", faults)
	}
}

// A call that sleeps while its mount is unmounted keeps its true result.
func TestSleepingCallIsDrained(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	id := r.Mount(withTool("sleeper", "['timer']", `
      console.log('asleep')
      await ctx.timeout(100)
      await new Promise((ok) => ctx.setTimeout(ok, 50)).catch((e) => console.log('new timer: ' + e.message))
      for await (const i of ctx.interval(10)) { if (i > 2) break }
      return 'true result'`))
	done := make(chan *tool.Result, 1)
	go func() { done <- r.Call("sleeper", nil) }()
	printed(r, id, "asleep")
	receipt := r.Unmount(id)
	r.Works(<-done, "true result")
	if strings.Contains(receipt, "abandoned") {
		t.Error(receipt)
	}
}

// A callback that hangs or never ends is its own trouble.
func TestTimerCallbacksThatHang(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	for _, c := range []struct{ name, start, says string }{
		{"endless", "ctx.setTimeout(function spin() { for (;;) {} }, 1)", "300 ms"},
		{"never_settles", "ctx.setTimeout(function hang() { return new Promise(() => {}) }, 1)", "1500 ms"},
		{"interval_never_settles", "ctx.setInterval(function hang() { return new Promise(() => {}) }, 1)", "1500 ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			stop := bystander(r, prompt)
			id := r.Mount(selfmodtest.Tool("own_"+c.name, "return 'fine'", c.start))
			eventuallyHas(r, "the error", func() string { return r.Inspect("temporary", id) }, c.says, "the callback of ctx.set", id)
			within(t, small.CallTimeout+replacing, "the unmount", func() { r.Unmount(id) })
			stop()
		})
	}
}

// TestTimersWithoutEnd: timers that start two timers each do not hold up an
// unmount.
func TestTimersWithoutEnd(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{CallTimeout: 20 * time.Second})
	id := r.Mount(`return { name: 'many', inject: ['timer'], apply(ctx) { const f = () => { ctx.setTimeout(f, 0); ctx.setTimeout(f, 0) }; f() } }`)
	begun := time.Now()
	r.Unmount(id)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the unmount took %s", took)
	}
}
