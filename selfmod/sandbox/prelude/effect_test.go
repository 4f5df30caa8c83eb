package prelude_test

import (
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// dispose enters the disposer of the n-th effect that was registered.
func dispose(m *machine, n int) string {
	m.t.Helper()
	effects := m.asks("sync", "effect")
	js := effects[n-1].args[3]
	return m.call("invoke", "dispose", js[strings.Index(js, `"fn":`)+5:len(js)-1], "{}")
}

func TestEffect(t *testing.T) {
	m := newMachine(t)
	m.run(`return (ctx) => {
		const log = (x) => () => console.log(x)
		globalThis.off = ctx.effect(function sub() { return log('one') })
		ctx.effect(function* () { yield log('a'); yield log('b'); return log('c') }, 'many')
		ctx.effect(() => {})
		ctx.effect(async () => log('late'))
		ctx.effect(function* () { yield log('x'); yield () => { throw new Error('first') }; yield () => { throw new Error('second') } })
		try { ctx.effect(function* () { yield log('rolled back'); throw new Error('half') }) } catch (e) { console.log(e.message) }
		ctx.effect(function* () { yield ctx.on('e', log('heard')) })
		ctx.on('off', () => { off(); return off() === off() })
	}`, "{}")
	labels := ""
	for _, a := range m.asks("sync", "effect") {
		labels += a.args[3]
	}
	if want := `{"label":"sub","fn":1}{"label":"many","fn":2}{"label":"anonymous","fn":3}{"label":"anonymous","fn":4}{"label":"anonymous","fn":5}{"label":"anonymous","fn":7}`; labels != want {
		t.Errorf("got %s, want %s", labels, want)
	}
	for n, want := range map[int]string{1: "=", 2: "=", 3: "=", 4: "="} {
		if got := dispose(m, n); got != want {
			t.Errorf("effect %d: %s", n, got)
		}
	}
	if got := message(t, dispose(m, 5)); got != "2 disposers failed: second; first" {
		t.Error(got)
	}
	if got := strings.Join(m.console, " "); !strings.HasPrefix(got, "log: rolled back log: half") || !strings.HasSuffix(got, "log: x") {
		t.Error(got)
	}
	for _, line := range []string{"log: one", "log: c", "log: b", "log: a", "log: late"} {
		if strings.Count(strings.Join(m.console, "\n")+"\n", line+"\n") != 1 {
			t.Errorf("%q did not run once: %v", line, m.console)
		}
	}
	if got := dispose(m, 1); got != "=" {
		t.Errorf("a second time: %s", got)
	}
	// A composite effect gives a handle of ours back to the host.
	if got := dispose(m, 6); got != "~" {
		t.Fatal(got)
	}
	last := itoa(m.calls)
	if got := m.asks("async", "dispose"); len(got) != 1 {
		t.Fatal(got)
	}
	m.settle(itoa(m.asyncID), "=")
	if m.done[last] != "=" {
		t.Error(m.done)
	}
}

func TestEffectAsync(t *testing.T) {
	m := newMachine(t)
	m.run(`return { inject: ['timer'], async apply(ctx) {
		const log = (x) => () => console.log(x)
		const off = await ctx.effect(async () => log('gone'))
		console.log(typeof off)
		ctx.effect(async function* () { yield log('first'); await ctx.timeout(5); yield log('second'); yield log('third') })
		try { await ctx.effect(async function* () { yield log('undone'); throw new TypeError('late') }) } catch (e) { console.log(e instanceof TypeError, e.message) }
	} }`, `{"timer":{"kind":"timer"}}`)
	if got := strings.Join(m.console, ";"); got != "log: function;log: undone;log: true late" {
		t.Error(got)
	}
	if got := m.asks("send", "gone"); len(got) != 1 || got[0].args[3] != `{"effect":3}` {
		t.Error(got)
	}
	m.console = nil
	// Disposed while it waits: the step in progress counts, no other is asked for.
	if got := dispose(m, 2); got != "~" {
		t.Fatal(got)
	}
	call := itoa(m.calls)
	m.settle("1", "=")
	if got := m.done[call]; got != "=" {
		t.Error(got)
	}
	if got := strings.Join(m.console, ";"); got != "log: second;log: first" {
		t.Error(got)
	}
}

func TestEffectUnhandled(t *testing.T) {
	m := newMachine(t)
	m.run("return (ctx) => { ctx.effect(async () => { throw new Error('nobody waits') }) }", "{}")
	list, _ := m.vm.Unhandled()
	if len(list) != 1 || !strings.Contains(list[0].Error.Message, "nobody waits") {
		t.Errorf("%+v", list)
	}
}

func TestTimers(t *testing.T) {
	m := newMachine(t)
	m.run(`return { inject: ['timer'], apply(ctx) {
		ctx.timeout(function tick() { console.log('t') }, 10)
		ctx.setTimeout((a, b) => console.log('args', a, b), 1, 'x', 'y')
		const i = ctx.setInterval(() => console.log('i'), 5)
		ctx.on('stop', () => ctx.clearInterval(i))
		ctx.timer.setTimeout(async () => { await 0; throw new Error('in timer') })
		ctx.clearTimeout(undefined)
	} }`, `{"timer":{"kind":"timer"}}`)
	var js []string
	for _, a := range m.asks("sync", "timer") {
		js = append(js, a.args[3])
	}
	if got, want := strings.Join(js, " "), `{"kind":"timeout","ms":10,"fn":1,"label":"ctx.timeout(tick)"} {"kind":"timeout","ms":1,"fn":2,"label":"ctx.setTimeout()"} {"kind":"interval","ms":5,"fn":3,"label":"ctx.setInterval()"} {"kind":"timeout","ms":0,"fn":5,"label":"ctx.setTimeout()"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, fn := range []string{"1", "1", "2", "3", "3"} {
		if got := m.call("invoke", "callback", fn, "{}"); got != "=" {
			t.Error(got)
		}
	}
	if got := m.call("invoke", "callback", "5", "{}"); !strings.Contains(got, "in timer") {
		t.Error(got)
	}
	m.call("invoke", "listener", "4", `{"args":[],"next":false}`)
	m.call("invoke", "callback", "3", "{}")
	if got := strings.Join(m.console, ";"); got != "log: t;log: args x y;log: i;log: i" {
		t.Error(got)
	}
}

func TestSleepAndTicks(t *testing.T) {
	m := newMachine(t)
	m.load(`return { inject: ['timer'], async apply(ctx) {
		await ctx.timeout(20)
		console.log('slept')
		ctx.on('go', async () => {
			try { for await (const n of ctx.interval(5)) { console.log('tick', n); if (n === 2) break } } catch (e) { console.log(e.message) }
			try { for await (const n of ctx.interval(5)) console.log('again', n) } catch (e) { console.log(e.message) }
		})
	} }`)
	if got := m.call("apply", "1", `{"timer":{"kind":"timer"}}`); got != "~" {
		t.Fatal(got)
	}
	apply := itoa(m.calls)
	if got := m.asks("async", "sleep"); got[0].args[3] != `{"ms":20}` {
		t.Error(got)
	}
	m.settle("1", "=")
	if m.done[apply] != "=" {
		t.Fatal(m.done)
	}
	if got := m.call("invoke", "listener", "1", `{"args":[],"next":false}`); got != "~" {
		t.Fatal(got)
	}
	m.call("invoke", "callback", "2", "{}")
	m.call("invoke", "callback", "2", "{}")
	m.settle("2", "=") // the dispose of the first interval
	m.call("invoke", "callback", "3", "{}")
	m.dispatch("retire", "1")
	m.drain()
	if got := strings.Join(m.console, ";"); got != "log: slept;log: tick 1;log: tick 2;log: again 1;log: Context has been disposed" {
		t.Error(got)
	}
}

func TestThrottleAndDebounce(t *testing.T) {
	m := newMachine(t)
	m.run(`return { inject: ['timer'], apply(ctx) {
		const t = ctx.throttle((x) => console.log('t', x), 1e6)
		const n = ctx.throttle((x) => console.log('n', x), 1e6, true)
		const d = ctx.debounce((x) => console.log('d', x), 0)
		const e = ctx.debounce((x) => console.log('e', x), 5)
		t(1); t(2); t(3); n(1); n(2); d(1); d(2); e(1); e.dispose(); e(2)
	} }`, `{"timer":{"kind":"timer"}}`)
	if got := m.asks("sync", "timer"); len(got) != 3 || !strings.Contains(got[0].args[3], `"label":"ctx.throttle()"`) {
		t.Error(got)
	}
	for _, fn := range []string{"1", "2", "3"} {
		m.call("invoke", "callback", fn, "{}")
	}
	if got := strings.Join(m.console, ";"); got != "log: t 1;log: n 1;log: t 3;log: d 2" {
		t.Error(got)
	}
}
