package prelude_test

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
)

func TestSource(t *testing.T) {
	if first := prelude.Source(); first != prelude.Source() || len(prelude.Hash()) != 64 {
		t.Error("the source or its hash is not stable")
	}
	for _, p := range prelude.Parts() {
		if !strings.Contains(prelude.Source(), p.Source) {
			t.Errorf("part %s is not in the source", p.Name)
		}
		if strings.Contains(prelude.Core(), p.Source) {
			t.Errorf("part %s is in the core", p.Name)
		}
	}
}

// What a listener and a body without services need is in the core; a tool needs
// one part.
func TestPartsAreReadWhenNeeded(t *testing.T) {
	m := newMachine(t)
	m.run("return async (ctx) => { ctx.on('tools/change', () => console.log('changed')); return () => {} }", "{}")
	m.call("invoke", "listener", "1", `{"args":[],"next":false}`)
	if len(m.parts) > 0 {
		t.Errorf("parts %v were read for a listener", m.parts)
	}
	tool(m, "async execute(args) { return { a: [args, 1, null] } }")
	if got := m.call("invoke", "tool", "3", toolArgs); got[0] != '=' {
		t.Error(got)
	}
	m.dispatch("drop", "9:1")
	m.dispatch("retire", "1")
	if got := strings.Join(m.parts, " "); got != "tool" {
		t.Errorf("parts %s were read for a tool", got)
	}
	m.load("new TextEncoder(); new TextDecoder(); btoa('x'); console.log({}); return 1")
	if got := strings.Join(m.parts, " "); got != "tool encoding inspect exact" {
		t.Errorf("parts %s were read", got)
	}
}

// The whole prelude works where nobody answers for parts.
func TestWhole(t *testing.T) {
	vm, err := qjs.New(qjs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vm.Close)
	m := &machine{t: t, vm: vm, sync: map[string]string{}, done: map[string]string{}}
	vm.SetHost(m.host)
	if err := vm.EvalBytecode(bytecode().whole); err != nil {
		t.Fatal(err)
	}
	if got := m.eval("[atob(btoa('é')), new AbortController().signal.aborted, structuredClone(new Date(5)).getTime(), typeof AbortSignal]"); got != "é,false,5,function" {
		t.Error(got)
	}
	if len(m.parts) > 0 {
		t.Errorf("parts %v were asked for", m.parts)
	}
}

func TestMemory(t *testing.T) {
	size := func(code []byte) int64 {
		vm, err := qjs.New(qjs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer vm.Close()
		before, _ := vm.Memory()
		if err := vm.EvalBytecode(code); err != nil {
			t.Fatal(err)
		}
		after, _ := vm.Memory()
		return (after - before) >> 10
	}
	core, whole := size(bytecode().core), size(bytecode().whole)
	t.Logf("core %d KB, whole %d KB", core, whole)
	if core > 256 || whole > 512 {
		t.Errorf("a machine takes %d KB more with the core, %d KB with the whole prelude", core, whole)
	}
}

func BenchmarkStart(b *testing.B) {
	for name, code := range map[string][]byte{"core": bytecode().core, "whole": bytecode().whole} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				vm, err := qjs.New(qjs.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := vm.EvalBytecode(code); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				vm.Close()
				b.StartTimer()
			}
		})
	}
}
