package prelude_test

import (
	"testing"

	"github.com/dsh-go/dsh/internal/qjs"
)

func TestLoads(t *testing.T) {
	m := newMachine(t)
	if got, want := m.load("return { name: 'x', inject: ['a'], apply() {} }"), `={"name":"x","inject":[{"name":"a"}]}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got := m.call("apply", "1", "{}"); got != "=" {
		t.Fatalf("apply: %s", got)
	}
}

func BenchmarkStart(b *testing.B) {
	code := bytecode()
	b.ReportMetric(float64(len(code)), "bytecode")
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
}
