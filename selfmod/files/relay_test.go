package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// kit provides a service with what a service can have.
const kit = `{ name: 'kit', apply(ctx) {
  let n = 0
  ctx.provide('kit', {
    version: 7, options: { a: [1, 'x'] },
    add: (a, b) => a + b,
    async later(x) { await null; return { x, n: ++n } },
    promised: () => Promise.resolve('soon'),
    shape: (v) => ({ got: v, 'null': null, bytes: new Uint8Array([1, 2]) }),
    nothing() {},
    fail() { const e = new TypeError('no luck'); e.code = 'E_LUCK'; throw e },
    gives: () => () => 1,
    self() { return this.version },
  })
} }`

// uses is a plugin whose tool, use, evaluates an expression with ctx.kit.
func uses(expression string) string {
	return fmt.Sprintf(`{ name: 'user', inject: ['kit', 'tools'], apply(ctx) { const kit = ctx.kit; harness.registerTool(ctx, harness.defineTool({ name: 'use', description: '', parameters: {},
  output: { schema: { type: 'json' }, render: (a, v) => [{ type: 'text', text: JSON.stringify(v) }] },
  execute: async () => { try { const v = %s; return v === undefined ? 'undefined' : v } catch (e) { return [e.name, e.message, e.code === undefined ? null : e.code] } } })) } }`, expression)
}

// TestAcrossWorkers: a plugin file's service is used by a temporary plugin, and the
// other way round: methods that are synchronous stay so, and data crosses.
func TestAcrossWorkers(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"file_provides", "mount_provides"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			temporary := way == "mount_provides"
			// Others before them, so that the numbers of machines meet.
			r.Mount("return { name: 'first', apply(ctx) { ctx.provide('wrong', { add: () => 'wrong' }) } }")
			r.mount("first.js", "export default { name: 'first2', apply(ctx) { ctx.provide('wrong2', { add: () => 'wrong' }) } }", nil)
			id := ""
			if temporary {
				id = r.Mount("return " + kit)
			} else {
				r.mount("kit.js", "export default "+kit, nil)
			}
			other := "plugin file ./plugins/kit.js"
			if temporary {
				other = "temporary Plugin " + id
			}
			for _, c := range []struct{ expression, want string }{
				{"kit.add(2, 3)", "5"},
				{"kit.add('a', 'b') + kit.self()", `"ab7"`},
				{"[kit.version, kit.options]", `[7,{"a":[1,"x"]}]`},
				{"typeof kit.add.name + ' ' + typeof kit.promised()", `"string string"`},
				{"[await kit.later(1), await kit.later({ y: [null] })]", `[{"x":1,"n":1},{"x":{"y":[null]},"n":2}]`},
				{"await kit.promised()", `"soon"`},
				{"kit.nothing()", `"undefined"`},
				{"(() => { const s = kit.shape({ $: 'data', a: new Uint8Array([3]) }); return [s.got.$, s.got.a instanceof Uint8Array, s.got.a[0], s.null, s.bytes.length] })()", `["data",true,3,null,2]`},
				{"kit.fail()", `["TypeError","no luck","E_LUCK"]`},
				{"kit.add(() => 1, 2)", `["TypeError","kit.add takes data only, no functions: the service is that of ` + other + `, which runs in another worker process",null]`},
				{"kit.gives()", `["TypeError","kit.gives gives data only, no functions: the service is that of ` + other + `, which runs in another worker process",null]`},
			} {
				var gone func()
				if temporary {
					f := r.mount("user.js", "export default "+uses(c.expression), nil)
					if f.State() != cordis.Active {
						t.Fatalf("%s: it is %s: %v", c.expression, f.State(), f.Err())
					}
					gone = func() { r.dispose(f) }
				} else {
					user := r.Mount("return " + uses(c.expression))
					gone = func() { r.Unmount(user) }
				}
				if got := r.Works(r.Call("use", nil)); got != c.want {
					t.Errorf("%s gives %s, want %s", c.expression, got, c.want)
				}
				gone()
			}
		})
	}
}

// TestAcrossWorkersEnds: who uses a service of another worker waits when it goes, runs
// again when it is back, and once when a file takes it over.
func TestAcrossWorkersEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.Mount("return { name: 'kit', apply(ctx) { ctx.provide('kit', { add: (a, b) => 'tried ' + (a + b) }) } }")
	user := r.Mount("let runs = 0\nreturn " + strings.Replace(uses("kit.add(1, 2) + runs"), "const kit", "runs++; const kit", 1))
	if got := r.Works(r.Call("use", nil)); got != `"tried 31"` {
		t.Fatalf("it says %s", got)
	}
	f, _ := r.stage("kit.js", "export default "+kit)
	r.Eventually("the service is the file's", func() (string, bool) {
		now := selfmodtest.Text(r.Call("use", nil))
		return now, now == "5" // 3 and the second run
	})
	r.Fails(r.Call("cordis_unmount", map[string]string{"id": id}), "was replaced by plugin file ./plugins/kit.js")
	r.dispose(f)
	if got := r.Inspect("temporary", user); !strings.Contains(got, "- state: pending") || !strings.Contains(got, "waiting for: kit") {
		t.Errorf("it is\n%s", got)
	}
}
