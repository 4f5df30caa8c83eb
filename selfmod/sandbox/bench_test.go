package sandbox_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox"
)

// benchPlugin is a plugin of some size, as a mount's body.
const benchPlugin = `
const words = (text) => text.split(/\s+/).filter(Boolean)
class Counter {
  #n = 0
  add(text) { for (const w of words(text)) if (w.length > 2) this.#n++; return this.#n }
}
const counter = new Counter()
return {
  name: 'counter', inject: ['tools'],
  apply(ctx) {
    ctx.on('tools/change', () => { console.log('changed', counter.add('tick tick')) })
  },
}`

// BenchmarkLoad is the Load and the Apply of a plugin in a warm worker, as the body of a
// mount and as modules.
func BenchmarkLoad(b *testing.B) {
	module := strings.Replace(benchPlugin, "return {\n  name", "export default {\n  name", 1)
	for _, c := range []struct {
		name string
		spec sandbox.Spec
	}{
		{"body", sandbox.Spec{Source: benchPlugin}},
		{"one_js", sandbox.Spec{Entry: "a.js", Files: map[string]string{"a.js": module}}},
		{"one_ts", sandbox.Spec{Entry: "a.ts", Files: map[string]string{"a.ts": module + "\nconst n: number = 1\n"}}},
		{"three_js", sandbox.Spec{Entry: "a.js", Files: map[string]string{
			"a.js": "import { one } from './b.js'\n" + module, "b.js": "export { one } from './c.js'", "c.js": "export const one = 1",
		}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := sandbox.New(sandbox.Config{MemoryMB: 16})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			c.spec.ID, c.spec.File = "a", "plugins/a.js"
			for b.Loop() {
				vm, _, err := s.Load(b.Context(), c.spec, newHost())
				if err != nil {
					b.Fatal(err)
				}
				if err := vm.Apply(b.Context(), 1, json.RawMessage(`{"tools":{"kind":"tools"}}`), nil); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				vm.Close(b.Context())
				time.Sleep(5 * time.Millisecond) // the worker makes machines ready again
				b.StartTimer()
			}
		})
	}
}
