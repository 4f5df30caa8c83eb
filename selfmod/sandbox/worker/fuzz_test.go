package worker

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
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

var fuzzSources = []string{
	"host.fn(1, (a) => host.async('x', a)); host.fn(2, () => host.sync('y')); host.fn(3, () => host.peer(0, 'k'))",
	"host.export('k', () => host.peer(1, 'k')); host.fn(1, () => host.peer(1, 'k')); host.fn(2, () => { while (true) {} })",
	"host.export('k', async () => host.async('z')); host.fn(3, async () => { while (true) await null })",
	"host.export('k', () => { throw 1 }); host.fn(1, () => { Promise.reject(1); return new Promise(() => {}) })",
	"throw 1", "return {", "while (true) {}", "const a: number = 1; return { apply: () => new Promise(() => {}) }",
}

// writeRandom writes frames as a host might send them, and sometimes as none would.
func writeRandom(w *wire.Writer, r *rand.Rand, wild bool, payload []byte) error {
	kinds := []wire.Kind{wire.Load, wire.Load, wire.Apply, wire.Invoke, wire.Invoke, wire.Invoke, wire.Settle,
		wire.Reply, wire.Cancel, wire.Bind, wire.Retire, wire.Unload, wire.Ping}
	loaded := map[uint32]bool{}
	for id := uint64(1); id < uint64(2+r.IntN(80)); id++ {
		f := wire.Frame{
			Kind: kinds[r.IntN(len(kinds))], ID: id, Chain: uint64(r.IntN(4)),
			Mount: uint32(r.IntN(4)), Run: uint32(r.IntN(2)), Name: "tool", Payload: wire.Ok([]byte("1")),
		}
		switch f.Kind {
		case wire.Load:
			if loaded[f.Mount] {
				continue
			}
			loaded[f.Mount] = true
			f.Payload = loadFrame(f.Mount, fuzzSources[r.IntN(len(fuzzSources))], 5*time.Millisecond).Payload
		case wire.Unload:
			if !loaded[f.Mount] {
				continue
			}
			// The number may be used again only once the Result is there.
			loaded[f.Mount], f.Mount = true, f.Mount+4*uint32(r.IntN(2))
		case wire.Invoke:
			f.Payload = wire.AppendInvoke(nil, uint32(r.IntN(4)), []byte(`1`))
		case wire.Apply, wire.Bind:
			f.Payload = []byte("{}")
		case wire.Settle, wire.Reply, wire.Cancel:
			f.ID = uint64(r.IntN(int(id)))
		}
		if wild && r.IntN(20) == 0 {
			f.Kind, f.ID, f.Payload = wire.Kind(r.IntN(256)), uint64(r.IntN(80)), payload
		}
		if err := w.Write(f); err != nil {
			return err
		}
	}
	return nil
}

func FuzzFrames(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed, seed%2 == 0, []byte(`{"source":"host.fn(1, (a) => a)"}`))
	}
	f.Fuzz(func(t *testing.T, seed uint64, wild bool, payload []byte) {
		randomFrames(t, seed, wild, payload)
	})
}

// TestRandomFrames: whatever frames come, the worker ends in order: with the
// input, or because the protocol was broken.
func TestRandomFrames(t *testing.T) {
	n := uint64(300)
	if raceEnabled {
		n = 20
	}
	for seed := range n {
		randomFrames(t, seed, seed%3 == 0, []byte("x"))
	}
}

func randomFrames(t *testing.T, seed uint64, wild bool, payload []byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	err := serveFrames(t, func(w *wire.Writer) { _ = writeRandom(w, r, wild, payload) })
	if err != nil && !(wild && errors.Is(err, ErrProtocol)) && !strings.Contains(err.Error(), "a second unload") {
		t.Errorf("seed %d: serve: %v", seed, err)
	}
}
