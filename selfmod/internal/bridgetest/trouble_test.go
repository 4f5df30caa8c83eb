package bridgetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// await waits until something was noted that begins so.
func (s *Shapes) await(t testing.TB, begin string) string {
	t.Helper()
	timeout := time.After(selfmodtest.Wait)
	for {
		select {
		case text := <-s.notify:
			if strings.HasPrefix(text, begin) {
				return text
			}
		case <-timeout:
			t.Fatalf("nothing begins with %q:\n%s", begin, s.Log())
		}
	}
}

// Whatever cancels a call reaches the method, and the plugin is told why.
func TestCancellation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, ended, want string }{
		{"signal_option", "const a = new AbortController(); const p = s.wait('w', { signal: a.signal }); ctx.setTimeout(() => a.abort(new RangeError('mine')), 5); return failed(() => p)",
			"its signal was aborted", "true | RangeError |  | mine"},
		{"signal_with_options", "const a = new AbortController(); const p = s.wait('w', { mode: 'fast', signal: a.signal }); ctx.setTimeout(() => a.abort(), 5); return failed(() => p)",
			"its signal was aborted", "true | AbortError | ABORT_ERR | This operation was aborted"},
		{"signal_last", "const a = new AbortController(); const p = s.wait('w', a.signal); a.abort(); return failed(() => p)",
			"its signal was aborted", "true | AbortError | ABORT_ERR | This operation was aborted"},
		{"signal_of_iteration", "const a = new AbortController(); ctx.setTimeout(() => a.abort(), 5); return failed(async () => { for await (const x of s.count(-1, { signal: a.signal })); })",
			"", "true | AbortError | ABORT_ERR | This operation was aborted"},
		{"signal_fired", "const a = new AbortController(); a.abort(); return failed(() => s.wait('never', a.signal))",
			"", "true | AbortError | ABORT_ERR | This operation was aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, s := rig(t, small)
			r.Mount(withService("use", c.body))
			if got := selfmodtest.Text(r.Call("use", nil)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if c.ended != "" {
				if got := s.await(t, "w ended"); got != "w ended: "+c.ended {
					t.Error(got)
				}
			}
			if strings.Contains(s.Log(), "never waits") {
				t.Error("a call whose signal had fired was made")
			}
		})
	}
}

// A call of a tool that is cancelled, or is overdue, cancels what it waits for;
// what a call that has ended began goes on.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	r, s := rig(t, small)
	r.Mount(withService("use", "return s.wait(args.x)"))
	r.Mount(withService("leave", "s.wait('left').catch(() => {}); return 'left'"))

	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan *tool.Result)
	go func() { done <- r.CallContext(ctx, "use", x("one")) }()
	s.await(t, "one waits")
	cancel()
	if got := s.await(t, "one ended"); got != "one ended: the call that it was made for was cancelled" {
		t.Error(got)
	}
	r.Fails(<-done)

	r.Fails(r.Call("use", x("two")), "callTimeout")
	if got := s.await(t, "two ended"); got != "two ended: the call that it was made for was cancelled" {
		t.Error(got)
	}

	ctx, cancel = context.WithCancel(r.Context())
	r.Works(r.CallContext(ctx, "leave", nil), "left")
	cancel()
	s.await(t, "left waits")
	select {
	case text := <-s.notify:
		t.Errorf("what a call had begun ended with its caller: %s", text)
	case <-time.After(50 * time.Millisecond):
	}
}

// An unmount ends what the mount waits for, whatever began it, and undoes what was
// begun for it.
func TestUnmountDuringCalls(t *testing.T) {
	t.Parallel()
	r, s := rig(t, small)
	id := r.Mount(`return { name: 'busy', inject: ['shapes'], async apply(ctx) {
  const s = ctx.shapes
  s.wait('apply').catch((e) => console.log('told ' + e.code))
  ;(async () => { for await (const n of s.count(-1)); })().catch(() => {})
  await s.watch('here', (text) => console.log(text))
  await s.start('process')
} }`)
	s.await(t, "apply waits")
	began := time.Now()
	text := r.Unmount(id)
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("the unmount took %v: %s", took, text)
	}
	log := s.Log()
	for _, want := range []string{"watch of here undone", "apply ended: this part of the plugin has been unmounted, and what it had begun was cancelled", "count ended"} {
		if !strings.Contains(log, want) {
			t.Errorf("it was not noted that %q:\n%s", want, log)
		}
	}
}

// A method that does not heed its context holds up an unmount no longer than a
// second, and the receipt says so.
func TestStubbornMethod(t *testing.T) {
	t.Parallel()
	r, s := rig(t, small)
	defer close(s.block)
	id := r.Mount("return { name: 'stubborn', inject: ['shapes'], apply(ctx) { ctx.shapes.stubborn().catch(() => {}) } }")
	s.await(t, "stubborn waits")
	began := time.Now()
	res := r.Call("cordis_unmount", map[string]string{"id": id})
	if took := time.Since(began); took < stopTime || took > stopTime+2*time.Second {
		t.Errorf("the unmount took %v", took)
	}
	if text := selfmodtest.Text(res); !strings.Contains(text, "1 calls of services did not end when they were cancelled") {
		t.Errorf("the receipt does not say it: %s", text)
	}
}

const stopTime = time.Second

// What a run had of the host is refused after its end, in words.
func TestAfterTheRun(t *testing.T) {
	t.Parallel()
	r, s := rig(t, small)
	id := r.Mount(`return { name: 'old', inject: ['shapes'], async apply(ctx) {
  const s = ctx.shapes
  if (globalThis.kept) {
    const k = globalThis.kept
    const say = async (what, fn) => { try { console.log(what + ': ' + await fn()) } catch (e) { console.log(what + ': ' + e.code + ' ' + e.message) } }
    await say('sync', () => k.s.add(1, 2))
    await say('async', () => k.s.read('x'))
    await say('method', () => k.p.write('x'))
    await say('property', () => k.p.pid)
    await say('iterator', async () => { for await (const n of k.s.count(3)) return n })
    await say('dispose', () => k.off())
    await say('new', () => s.add(1, 2))
    return
  }
  globalThis.kept = { s, p: await s.start('x'), off: s.keep(() => 'kept') }
} }`)
	var f *cordis.Fiber
	for _, one := range r.Root.Runtime().Fibers() {
		if one.Name() == "old" {
			f = one
		}
	}
	if err := f.Restart(r.Context()); err != nil {
		t.Fatal(err)
	}
	text := r.Inspect("temporary", id)
	const over = `CONTEXT_ENDED this ctx belongs to a run of the temporary Plugin "old" that has ended`
	for _, what := range []string{"sync", "async", "method", "property", "iterator", "dispose"} {
		if !strings.Contains(text, what+": "+over) {
			t.Errorf("%s is not refused:\n%s", what, text)
		}
	}
	if !strings.Contains(text, "new: 3") {
		t.Errorf("the new run cannot call:\n%s", text)
	}
	fn := s.Kept()[0]
	if _, err := fn(r.Context(), 1); err == nil || !strings.Contains(err.Error(), "a callback of ctx.shapes.keep of temporary Plugin "+id+" (old) was not called: its part of the plugin has been unmounted") {
		t.Errorf("a function of an old run gave %v", err)
	}
	r.Unmount(id)
	if _, err := fn(r.Context(), 1); err == nil {
		t.Error("a function of what was unmounted was called")
	}
}

// A function that was given is called for as long as its plugin lasts.
func TestKeptFunctions(t *testing.T) {
	t.Parallel()
	r, s := rig(t, small)
	r.Mount(withService("give", "const f = (n) => 'got ' + n; s.keep(f); s.keep(f); s.keep((n) => { throw new TypeError('no ' + n) }); s.keep(() => new Promise(() => {})); return 'given'"))
	r.Works(r.Call("give", nil), "given")
	kept := s.Kept()
	for range 2 {
		runtime.GC() // what is not used any more is taken back, and this is not
		for _, fn := range kept[:2] {
			if text, err := fn(r.Context(), 5); text != "got 5" || err != nil {
				t.Errorf("the function gave %q, %v", text, err)
			}
		}
	}
	if _, err := kept[2](r.Context(), 7); err == nil || !strings.Contains(err.Error(), "no 7") {
		t.Errorf("the function that throws gave %v", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := kept[3](ctx, 7); err == nil {
		t.Error("the function that never settles gave no error")
	}
}

// Functions that nobody can call any more are taken back.
func TestReleasedFunctions(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	r.Mount(withService("many", "for (let i = 0; i < 500; i++) s.eachNow(['a'], () => 1); return 'done'",
		"globalThis.live = 0; const registry = new FinalizationRegistry(() => live--)",
		"globalThis.fresh = () => { live++; const f = () => 1; registry.register(f); return f }"))
	r.Mount(withService("count", "for (let i = 0; i < 500; i++) s.eachNow(['a'], fresh()); return String(live)",
		"globalThis.live = 0; const registry = new FinalizationRegistry(() => live--)",
		"globalThis.fresh = () => { live++; const f = () => 1; registry.register(f); return f }"))
	r.Eventually("functions are taken back", func() (string, bool) {
		runtime.GC()
		text := r.Works(r.Call("count", nil))
		var n int
		_, err := fmt.Sscan(text, &n)
		return text, err == nil && n < 1000
	})
	for range 5 {
		r.Works(r.Call("count", nil))
		runtime.GC()
	}
	r.Eventually("functions are taken back again", func() (string, bool) {
		runtime.GC()
		text := r.Works(r.Call("count", nil))
		var n int
		_, err := fmt.Sscan(text, &n)
		return text, err == nil && n < 1500
	})
}

// An iteration that is broken off ends in Go, before the loop goes on.
func TestBrokenIteration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body string }{
		{"break", "for await (const n of s.count(1e9)) if (n === 3) break; return 'after'"},
		{"throw", "try { for await (const n of s.count(1e9)) if (n === 3) throw 1 } catch {} return 'after'"},
		{"return", "const it = s.count(1e9)[Symbol.asyncIterator](); await it.next(); await it.return(); return 'after'"},
		{"return_while_it_waits", "const it = s.count(-1)[Symbol.asyncIterator](); const p = it.next(); await ctx.timeout(5); await it.return(); return (await p).done ? 'after' : 'no'"},
		{"signal_between_steps", "const c = new AbortController(); try { for await (const n of s.count(1e9, { signal: c.signal })) if (n === 3) c.abort(new Error('enough')) } catch (e) { return e.message === 'enough' ? 'after' : e.message } return 'no end'"},
		{"signal_last_step", "const c = new AbortController(); let n = 0; try { for await (const x of s.count(5, { signal: c.signal })) { n++; if (x === 3) c.abort() } } catch (e) { return e.name + n === 'AbortError4' ? 'after' : e.name + n } return 'no end'"},
		{"return_before_it_began", "const it = s.count(-1)[Symbol.asyncIterator](); const p = it.next(); await it.return(); return (await p).done ? 'after' : 'no'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, s := rig(t, small)
			r.Mount(withService("use", c.body))
			r.Works(r.Call("use", nil), "after")
			s.await(t, "count ended")
		})
	}
}

// An iteration that nobody reads any more ends too.
func TestLostIteration(t *testing.T) {
	t.Parallel()
	r, s := rig(t, small)
	r.Mount(withService("use", "for (let i = 0; i < 1e5; i++) { const o = {}; o.o = o }; const it = s.count(1e9)[Symbol.asyncIterator](); await it.next(); return 'lost'"))
	r.Works(r.Call("use", nil), "lost")
	r.Works(r.Call("use", nil), "lost")
	s.await(t, "count ended")
}

// Objects are bounded, and those that are lost are given back.
func TestManyObjects(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	big := strings.Replace
	r.Mount(big(withService("hoard", "const all = globalThis.all ??= []; try { for (let i = 0; i < 10100; i++) all.push(await s.start('x')) } catch (e) { return all.length + ' ' + e.message } return 'no limit'"),
		"parameters:", "timeoutMs: 9000, parameters:", 1))
	r.Mount(big(withService("waste", "for (let i = 0; i < 3000; i++) await s.start('x'); return 'fine'"), "parameters:", "timeoutMs: 9000, parameters:", 1))
	for range 4 {
		r.Works(r.Call("waste", nil), "fine")
	}
	r.Works(r.Call("hoard", nil), "10000 ctx.shapes.start: a temporary Plugin may have 10000 objects of services at a time, and this one has that many: let go of some")
	r.Works(r.Call("waste", nil), "fine")
}

// Iterations are bounded.
func TestManyIterations(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	r.Mount(withService("hoard", "const all = globalThis.all ??= []; try { for (let i = 0; i < 300; i++) { const it = s.count(1e9)[Symbol.asyncIterator](); await it.next(); all.push(it) } } catch (e) { return all.length + ' ' + e.message } return 'no limit'"))
	r.Works(r.Call("hoard", nil), "200 a temporary Plugin may have 200 iterations at a time")
}

// Calls leave nothing in the plugin's machine, whatever became of them. Objects and
// iterators that are lost wait there for the engine's collector, so they are not here.
func TestCallsLeaveNothing(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	id := r.Mount(withService("use", `for (let i = 0; i < 200; i++) {
    await s.read('x'); await s.read('x', { maxBytes: i }); await failed(() => s.read(5)); await failed(() => s.fails('X'))
    const a = new AbortController(); const p = failed(() => s.wait('w', { signal: a.signal })); a.abort(); await p
    await s.read('y', { signal: exec.signal }); await s.each(['a'], (one) => one.name)
    s.eachNow(['a'], () => 1)
  } return 'done'`))
	heap := func() (kb int) {
		runtime.GC()
		r.Works(r.Call("use", nil), "done")
		text := r.Inspect("temporary", id)
		_, rest, _ := strings.Cut(text, "heap: ")
		if _, err := fmt.Sscan(rest, &kb); err != nil {
			t.Fatalf("no heap in %s", text)
		}
		return kb
	}
	heap()
	before := heap()
	after := before
	for range 4 {
		after = heap()
	}
	if after > before+before/4 {
		t.Errorf("the heap grew from %d to %d KB", before, after)
	}
}
