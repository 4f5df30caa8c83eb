package qjs

import (
	"strings"
	"testing"
	"time"
)

func BenchmarkNewVM(b *testing.B) {
	for b.Loop() {
		vm, err := New(Options{})
		if err != nil {
			b.Fatal(err)
		}
		vm.Close()
	}
}

func BenchmarkCall(b *testing.B) {
	json := `{"path":"a/b.txt","lines":[1,2,3],"flag":true}`
	for _, c := range []struct {
		name, fn string
		args     []any
	}{
		{"string", "s => s", []any{"hello"}},
		{"json_small", "s => JSON.stringify(JSON.parse(s))", []any{`{"path":"a"}`}},
		{"json", "s => JSON.stringify(JSON.parse(s))", []any{json}},
		{"dispatch", "(() => { const m = new Map([[7, x => x]]); return (op, id, json) => JSON.stringify(m.get(id)(JSON.parse(json))) })()",
			[]any{"call", 7, json}},
		{"host", "s => __host('op', s)", []any{json}},
		{"megabyte", "s => s", []any{strings.Repeat("x", 1<<20)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			vm := open(b, Options{})
			vm.SetHost(func(_ string, args []string) (string, bool, error) { return args[0], true, nil })
			holdFunction(b, vm, c.fn)
			vm.SetDeadline(time.Now().Add(time.Hour))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := vm.Call(c.args...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// plugin is about what a model writes.
const plugin = `(async function (ctx, harness, console) {
const counts = new Map()
function count(path) {
  const n = (counts.get(path) ?? 0) + 1
  counts.set(path, n)
  return n
}
return {
  name: 'counter',
  inject: ['fs', 'tools'],
  apply(ctx) {
    ctx.tools.register({
      name: 'count_lines',
      description: 'Counts the lines of a file.',
      parameters: { path: { type: 'string' } },
      async execute({ path }) {
        const text = await ctx.fs.read(path)
        return { lines: text.split('\n').length, calls: count(path) }
      },
    })
    ctx.on('tools/post-execute', event => count(event.name))
  },
}
})`

func BenchmarkCompile(b *testing.B) {
	vm := open(b, Options{})
	for b.Loop() {
		if _, err := vm.Compile(plugin, "mounts/counter.js"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunBytecode(b *testing.B) {
	vm := open(b, Options{})
	code, err := vm.Compile(plugin, "mounts/counter.js")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		v, err := vm.RunBytecode(code)
		if err != nil {
			b.Fatal(err)
		}
		v.Free()
	}
}

func BenchmarkRunJobs(b *testing.B) {
	vm := open(b, Options{})
	holdFunction(b, vm, "() => { (async () => { for (let i = 0; i < 1000; i++) await 0 })() }")
	for b.Loop() {
		if _, _, err := vm.Call(); err != nil {
			b.Fatal(err)
		}
		if _, _, err := vm.RunJobs(1 << 20); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNested(b *testing.B) {
	a, c := open(b, Options{}), open(b, Options{})
	holdFunction(b, a, "s => s === 'in' ? s : __host('c', s)")
	holdFunction(b, c, "s => __host('a', 'in')")
	a.SetHost(func(_ string, args []string) (string, bool, error) { return c.Call(args[0]) })
	c.SetHost(func(_ string, args []string) (string, bool, error) { return a.Call(args[0]) })
	for b.Loop() {
		if _, _, err := a.Call("out"); err != nil {
			b.Fatal(err)
		}
	}
}
