package cordis

import (
	"context"
	"testing"
)

var (
	benchEmit    = NewEmit[int]("bench/emit")
	benchService = NewService[int]("bench-service")
)

// BenchmarkMountDispose mounts a plugin, waits for its body and disposes it.
func BenchmarkMountDispose(b *testing.B) {
	ctx := context.Background()
	root := New()
	p := &Plugin{Name: "p", Apply: func(*Context, any) error { return nil }}
	b.ReportAllocs()
	for b.Loop() {
		f, err := root.Mount(p, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Await(ctx); err != nil {
			b.Fatal(err)
		}
		if _, err := f.Dispose(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMountDisposeListener is the same with a listener in the body.
func BenchmarkMountDisposeListener(b *testing.B) {
	ctx := context.Background()
	root := New()
	p := &Plugin{Name: "p", Apply: func(c *Context, _ any) error {
		_, err := benchEmit.On(c, func(context.Context, int) {})
		return err
	}}
	b.ReportAllocs()
	for b.Loop() {
		f, _ := root.Mount(p, nil)
		if err := f.Await(ctx); err != nil {
			b.Fatal(err)
		}
		if _, err := f.Dispose(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServiceGet reads an available service.
func BenchmarkServiceGet(b *testing.B) {
	root := New()
	if _, err := benchService.Provide(root, 1); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := benchService.Get(root); !ok {
			b.Fatal("no service")
		}
	}
}

// BenchmarkServiceUse reads an injected service from the fiber's snapshot.
func BenchmarkServiceUse(b *testing.B) {
	root := New()
	if _, err := benchService.Provide(root, 1); err != nil {
		b.Fatal(err)
	}
	f, err := root.Inject(Require("bench-service"), func(*Context) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Await(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := benchService.Use(f.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEmit100 calls 100 listeners, of one fiber and of a hundred.
func BenchmarkEmit100(b *testing.B) {
	ctx := context.Background()
	for _, bb := range []struct {
		name   string
		fibers int
	}{{"one_fiber", 1}, {"hundred_fibers", 100}} {
		b.Run(bb.name, func(b *testing.B) {
			root := New()
			n := 0
			for range bb.fibers {
				f, _ := root.Mount(&Plugin{Name: "p", Apply: func(c *Context, _ any) error {
					for range 100 / bb.fibers {
						if _, err := benchEmit.On(c, func(_ context.Context, a int) { n += a }); err != nil {
							return err
						}
					}
					return nil
				}}, nil)
				if err := f.Await(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				benchEmit.Emit(ctx, root, 1)
			}
			if n < 100 {
				b.Fatal("listeners were not called")
			}
		})
	}
}
