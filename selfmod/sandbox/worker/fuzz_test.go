package worker

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// serveFrames serves the frames and then the end of input, and returns how Serve
// ended.
func serveFrames(t *testing.T, write func(w *wire.Writer)) error {
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Serve(context.Background(), Options{In: in, Out: io.Discard, Prelude: stubPrelude, Spare: -1})
		_ = in.CloseWithError(io.ErrClosedPipe)
		ended <- err
	}()
	write(wire.NewWriter(out))
	_ = out.Close()
	select {
	case err := <-ended:
		return err
	case <-time.After(wait):
		t.Fatal("serve does not end")
	}
	return nil
}

// FuzzFrames: whatever frames come, the worker ends in order: with the input, or
// because the protocol was broken.
func FuzzFrames(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed, []byte(`{"source":"host.fn(1, (a) => a)"}`))
	}
	kinds := []wire.Kind{wire.Load, wire.Load, wire.Apply, wire.Invoke, wire.Invoke, wire.Settle, wire.Reply, wire.Cancel, wire.Bind, wire.Retire, wire.Unload, wire.Ping}
	sources := []string{
		"host.fn(1, (a) => host.async('x', a)); host.fn(2, () => host.sync('y')); host.fn(3, (a) => host.peer(a, 'k'))",
		"host.export('k', () => host.peer(0, 'k')); host.fn(1, () => host.peer(0, 'k'))",
		"host.export('k', async () => host.async('z'))", "throw 1", "return {", "while (true) {}",
	}
	f.Fuzz(func(t *testing.T, seed uint64, payload []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		err := serveFrames(t, func(w *wire.Writer) {
			for range 1 + r.IntN(60) {
				f := wire.Frame{
					Kind: kinds[r.IntN(len(kinds))], ID: uint64(r.IntN(100)), Chain: uint64(r.IntN(4)),
					Mount: uint32(r.IntN(4)), Run: uint32(r.IntN(2)), Name: "tool",
				}
				switch {
				case r.IntN(100) == 0:
					f.Kind, f.Payload = wire.Kind(r.IntN(256)), payload
				case f.Kind == wire.Load:
					f.Payload = loadFrame(f.Mount, sources[r.IntN(len(sources))], 5*time.Millisecond).Payload
				case f.Kind == wire.Invoke:
					f.Payload = wire.AppendInvoke(nil, uint32(r.IntN(4)), []byte(`1`))
				case f.Kind == wire.Apply || f.Kind == wire.Bind:
					f.Payload = []byte("{}")
				default:
					f.Payload = wire.Ok([]byte("1"))
				}
				if w.Write(f) != nil {
					return
				}
			}
		})
		if err != nil && !errors.Is(err, ErrProtocol) {
			t.Errorf("serve: %v", err)
		}
	})
}
