package compile

import (
	"strings"
	"testing"
)

// benchBody is a mount of some size; as a module it begins with export default.
const benchBody = `
const words = (text) => text.split(/\s+/).filter(Boolean)
class Counter {
  #n = 0
  add(text) { for (const w of words(text)) if (w.length > 2) this.#n++; return this.#n }
}
const counter = new Counter()
return {
  name: 'counter', inject: ['tools', 'timer'],
  apply(ctx) {
    ctx.tools.register(harness.defineTool({
      name: 'count_words', description: 'Counts words', parameters: { text: { type: 'string', required: true } },
      execute: ({ text }) => ({ words: counter.add(text) }),
    }))
    ctx.on('tools/change', () => { console.log('changed') })
    ctx.setInterval(() => counter.add('tick tick tick'), 60_000)
  },
}`

// BenchmarkCompile compares what a module costs with the body of a mount.
func BenchmarkCompile(b *testing.B) {
	text := strings.Replace(benchBody, "return {\n  name", "export default {\n  name", 1)
	for _, c := range []struct {
		name, entry string
		files       map[string]string
	}{
		{"body", "", nil},
		{"one_js", "a.js", map[string]string{"a.js": text}},
		{"one_ts", "a.ts", map[string]string{"a.ts": text + "\nconst n: number = 1\n"}},
		{"three_js", "a.js", map[string]string{"a.js": "import { one } from './b.js'\n" + text, "b.js": "export { one } from './c.js'", "c.js": "export const one = 1"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			vm, _ := newModuleVM(b)
			b.ReportAllocs()
			for b.Loop() {
				var unit *Unit
				var err error
				if c.entry == "" {
					unit, err = Source(vm, benchBody, file)
				} else {
					unit, err = Module(vm, c.files, c.entry, "plugins/a")
				}
				if err != nil {
					b.Fatal(err)
				}
				unit.Code.Free()
			}
		})
	}
}
