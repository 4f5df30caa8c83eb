package worker

import (
	"testing"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
)

// Half of the spare VMs have run the part that a tool plugin asks for; a plugin
// gets its kind while there is one, and any other rather than none.
func TestSparesByKind(t *testing.T) {
	w, err := newWorker(Options{Prelude: prelude.Core(), Parts: prelude.Parts()})
	if err != nil {
		t.Fatal(err)
	}
	s := idleSpares(w, 4)
	s.memoryMB = limits.VMMemoryMB
	for {
		memoryMB, kind := s.missing()
		if memoryMB == 0 {
			break
		}
		vm, err := w.newVM(memoryMB, kind)
		if err != nil {
			t.Fatal(err)
		}
		s.put(vm, memoryMB, kind)
	}
	if plain, tools := len(s.ready[""]), len(s.ready["tool"]); plain != 2 || tools != 2 {
		t.Fatalf("%d plain and %d for tools are ready, want 2 and 2", plain, tools)
	}
	if got := w.parts.hinted("return (ctx) => ctx.on('ready', () => {})"); got != "" {
		t.Errorf("a listener gets part %q", got)
	}
	// The third of three tools gets a plain one, which asks for the part itself.
	for i, want := range []bool{false, false, true} {
		vm, err := s.take(limits.VMMemoryMB, w.parts.hinted("harness.defineTool({})"))
		if err != nil {
			t.Fatal(err)
		}
		asked := false
		vm.SetHost(func(op string, args []string) (string, bool, error) {
			asked = asked || op == "part" && args[0] == "tool"
			return "", false, w.parts.run(vm, args[0])
		})
		body, err := vm.Compile("(function (ctx, harness) { harness.defineTool() })", "plugin.js")
		if err != nil {
			t.Fatal(err)
		}
		fn, err := vm.RunBytecode(body)
		if err != nil {
			t.Fatal(err)
		}
		answer, _, err := vm.Call("load", "1", fn, "{}")
		fn.Free()
		vm.Close()
		if err != nil || answer == "" || answer[0] != '!' {
			t.Fatalf("defineTool() of tool %d gave %q, %v", i, answer, err)
		}
		if asked != want {
			t.Errorf("tool %d asked for the part: %t, want %t", i, asked, want)
		}
	}
	if left := s.count(); left != 1 {
		t.Errorf("%d VMs are left, want 1", left)
	}
	closeAll(s.ready)
}
