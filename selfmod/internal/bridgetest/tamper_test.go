package bridgetest

import (
	"testing"

	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// What a plugin does to the language that it runs in does not reach how services
// are called.
func TestReplacedIntrinsics(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	const evil = "const evil = () => { throw new Error('EVIL') }; const own = Object.getOwnPropertyNames, def = Object.defineProperty;" +
		"const replaceAll = (o) => { for (const k of own(o)) if (k !== 'constructor' && k !== 'prototype') try { def(o, k, { __proto__: null, value: evil, writable: true, configurable: true }) } catch {} };"
	for _, c := range []struct{ name, code string }{
		{"json", "JSON.stringify = JSON.parse = evil"},
		{"promise", "Promise.prototype.then = Promise.prototype.catch = evil;"},
		{"getters", "for (const k of ['v', 'd', 'h', 't', 's', 'm', 'a', '$', 'value', 'done', 'signal', 'skip', 'token', 'json', 'kind', 'sig', 'head', 'run', 'read', 'resolve', 'reject', 'code', 'name', 'message', 'stack', 'get', 'set', 'extra', 'gone', 'fn', 'args', 'types', 'members']) def(Object.prototype, k, { __proto__: null, get: () => undefined, set: evil, configurable: true })"},
		{"values", "for (const k of ['d', '$', 'signal', 'skip', 'token', 's', 'get', 'set']) Object.prototype[k] = true"},
		{"numeric_setters", "for (let i = 0; i < 40; i++) for (const p of [Array.prototype, Object.prototype]) def(p, i, { __proto__: null, get: evil, set: evil, configurable: true })"},
		{"arrays", "replaceAll(Array.prototype); replaceAll(Array)"},
		{"strings", "replaceAll(String.prototype); globalThis.String = evil"},
		{"functions", "replaceAll(Function.prototype); replaceAll(Reflect)"},
		{"collections", "for (const c of [Map, Set, WeakMap, WeakRef, FinalizationRegistry]) replaceAll(c.prototype)"},
		{"objects", "replaceAll(Object)"},
		{"errors", "Error.captureStackTrace = evil; Error.prepareStackTrace = evil; Error.stackTraceLimit = 0; replaceAll(Error.prototype)"},
		{"typed", "replaceAll(Uint8Array); replaceAll(Object.getPrototypeOf(Uint8Array.prototype)); replaceAll(ArrayBuffer.prototype)"},
		{"iterators", "Array.prototype[Symbol.iterator] = evil; String.prototype[Symbol.iterator] = evil"},
		{"prototypes", "Object.setPrototypeOf(Array.prototype, null); Object.setPrototypeOf(Promise.prototype, null); Object.setPrototypeOf(Error.prototype, null)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			id := r.Mount(`return { name: 'tamper', inject: ['shapes', 'tools'], apply(ctx) {
  const s = ctx.shapes, bytes = new Uint8Array([1, 2]), controller = new AbortController()
  ` + evil + c.code + `
  harness.registerTool(ctx, harness.defineTool({ name: 'tampered', description: 'd', parameters: {},
    output: { schema: { type: 'string' }, render: (_a, v) => [{ __proto__: null, type: 'text', text: v }] },
    async execute() {
      let out = ''
      out += s.add(1, 2)
      out += await s.read('a', { maxBytes: 5 })
      out += (await s.bytes(bytes))[0]
      out += s.item({ name: 'n', size: 3, tags: ['x'] }).tags[0]
      out += await (await s.start('p')).state
      const it = s.count(3)
      for await (const n of it) out += n
      out += (await s.each(['q'], (one) => one.name))[0]
      try { await s.read(5) } catch (e) { out += e.code }
      const p = s.wait('w', { signal: controller.signal })
      controller.abort()
      try { await p } catch (e) { out += e.code }
      return out
    } }))
} }`)
			const want = "3a 5  2xp after 0 writes012qBAD_ARGUMENTSABORT_ERR"
			if got := selfmodtest.Text(r.Call("tampered", nil)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			r.Unmount(id)
		})
	}
}
