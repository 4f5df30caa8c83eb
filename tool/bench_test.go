package tool

import (
	"context"
	"fmt"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

// BenchmarkExecute is what the registry costs around a body that does nothing.
func BenchmarkExecute(b *testing.B) {
	nothing := def("x", func(d *Definition) {
		d.Output.Render = func(context.Context, lossless.Text, lossless.Text) ([]Block, error) {
			return []Block{TextBlock("ok")}, nil
		}
	}, body(func(context.Context, *Exec) (Outcome, error) { return Outcome{Value: lossless.Text(`"ok"`)}, nil }))
	run := func(b *testing.B, w *world) {
		call := Call{Name: "x", CallID: "c", Arguments: lossless.Text(`{"text":"some text that a model sent","more":[1,2,3]}`)}
		b.ReportAllocs()
		for b.Loop() {
			if r := w.r.Execute(w.ctx(), call); r.IsError {
				b.Fatal(r.Error)
			}
		}
	}
	b.Run("bare", func(b *testing.B) {
		w := newWorld(b)
		w.owner(w.root, "o", nothing)
		run(b, w)
	})
	b.Run("listeners=4", func(b *testing.B) {
		w := newWorld(b)
		w.owner(w.root, "o", nothing)
		saw := make([]string, 0, 4)
		w.plugin(w.root, "l", func(c *cordis.Context) error { return listenAll(c, &saw) })
		_, err := Completed.On(w.root, func(context.Context, Finished) { saw = saw[:0] })
		w.must(err)
		run(b, w)
	})
	b.Run("tools=1000", func(b *testing.B) {
		w := newWorld(b)
		for i := range 1000 {
			w.owner(w.root, "o", def(fmt.Sprintf("t%d", i)))
		}
		w.owner(w.root, "o", nothing)
		run(b, w)
	})
}

func BenchmarkRegister(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			w := newWorld(b)
			for i := range n {
				w.owner(w.root, "o", def(fmt.Sprintf("t%d", i)))
			}
			d := def("x")
			b.ReportAllocs()
			for b.Loop() {
				h, err := w.r.Register(w.root, d)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Dispose(w.ctx()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	w := newWorld(b)
	for i := range 1000 {
		w.owner(w.root, "o", def(fmt.Sprintf("t%d", i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		w.r.List(nil)
	}
}
