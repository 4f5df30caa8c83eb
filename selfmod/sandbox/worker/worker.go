package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/relay"
)

// Options are what Serve works with.
type Options struct {
	In  io.Reader // frames of the host
	Out io.Writer // frames to the host
	// Prelude is the JavaScript that every VM runs first.
	Prelude string
	// Parts are what the prelude may ask for later; see package prelude.
	Parts []prelude.Part
	// PreludeHash is what Ready says of it.
	PreludeHash string
	// Lock is what Ready says of the process.
	Lock wire.Lock
	// Spare is how many VMs are kept ready; 0 means DefaultSpare, below 0 none.
	Spare int

	wait time.Duration // see waitLimit; for tests
}

// DefaultSpare is how many VMs are kept ready after the first Load, of all kinds.
const DefaultSpare = 8

// ErrProtocol is wrapped by Serve's error when the host sent what the protocol
// does not allow.
var ErrProtocol = errors.New("the host broke the protocol")

// errQuit is how Quit ends the reader.
var errQuit = errors.New("quit")

// errRelieved is how a reader ends that another one has relieved.
var errRelieved = errors.New("another goroutine reads")

// worker is the state of one Serve.
type worker struct {
	in       *wire.Reader
	relay    *relay.Relay // who reads; nil: one goroutine does, and executors run everything
	out      *wire.Writer
	prelude  []byte // bytecode
	parts    *parts
	done     chan struct{}
	fail     func(error) // ends Serve with the first error
	run      executors
	spare    *spares
	checks   checks
	wait     time.Duration
	lastID   atomic.Uint64 // ids that the worker chooses: of HostSync, HostAsync, Late
	stopping bool          // guarded by mu

	mu       sync.Mutex
	catching bool   // the reader serves what comes to be served
	caught   *mount // what came
	mounts   map[uint32]*mount
	calls    map[uint64]*call
	replies  map[uint64]*reply
	asyncs   map[uint64]*async
}

// Serve works until the host says Quit or closes In, which is no error, until
// ctx ends, or until the connection or the protocol is broken. It does not wait
// for In: close it to end the goroutine that reads.
func Serve(ctx context.Context, o Options) error {
	w, err := newWorker(o)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if err := w.serveUntil(ctx, o); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// newWorker returns a worker that has started nothing.
func newWorker(o Options) (*worker, error) {
	code, err := compilePrelude(o.Prelude)
	if err != nil {
		return nil, err
	}
	return &worker{
		out: wire.NewWriter(o.Out), prelude: code, parts: newParts(o.Parts), done: make(chan struct{}), wait: cmp.Or(o.wait, waitLimit),
		mounts: map[uint32]*mount{}, calls: map[uint64]*call{},
		replies: map[uint64]*reply{}, asyncs: map[uint64]*async{},
	}, nil
}

// serveUntil is Serve's life.
func (w *worker) serveUntil(ctx context.Context, o Options) error {
	hello, err := json.Marshal(wire.Hello{
		Protocol: wire.Protocol, Prelude: o.PreludeHash, Engine: qjs.EngineVersion, Lock: o.Lock,
	})
	if err != nil {
		return fmt.Errorf("encode hello: %w", err)
	}
	if err := w.out.Write(wire.Frame{Kind: wire.Ready, Payload: hello}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	w.fail = func(err error) {
		select {
		case ended <- err:
		default:
		}
	}
	w.run.init(w)
	w.spare = newSpares(w, o.Spare)
	w.in = wire.NewReader(o.In)
	if f, ok := o.In.(*os.File); ok {
		w.relay = relay.New(f)
	}
	go w.read()
	if w.relay != nil {
		go w.standby()
	}
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	w.shutdown()
	if errors.Is(err, io.EOF) || errors.Is(err, errQuit) {
		return nil
	}
	return err
}

// shutdown stops everything that can be stopped and closes the VMs.
func (w *worker) shutdown() {
	w.mu.Lock()
	w.stopping = true
	for _, m := range w.mounts {
		m.interrupt()
	}
	close(w.done)
	w.mu.Unlock()
	if w.relay != nil {
		w.relay.Close()
	}
	w.spare.stop()
	if !w.run.stop() {
		return // something hangs in the engine: the process ends with it
	}
	for _, m := range w.mounts {
		w.mu.Lock()
		vm := m.vm
		m.vm = nil
		w.mu.Unlock()
		if vm != nil {
			m.clock.stop()
			vm.Close()
		}
	}
}

// standby waits until it is to read, and reads.
func (w *worker) standby() {
	if w.relay.Standby() {
		w.read()
	}
}

// read serves frames until one ends the worker, and is the standby when another
// goroutine has relieved it.
func (w *worker) read() {
	debug.SetPanicOnFault(true)
	for {
		f, err := w.next()
		if err == nil {
			err = w.act(f)
		}
		switch {
		case err == nil:
		case errors.Is(err, errRelieved):
			if !w.relay.Standby() {
				return
			}
		default:
			w.fail(err)
			return
		}
	}
}

// next reads a frame.
func (w *worker) next() (wire.Frame, error) {
	f, err := w.in.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return f, err
}

// act acts on a frame, and serves the VM that it is for on this goroutine, where
// somebody else can read meanwhile: an executor would have to be woken.
func (w *worker) act(f wire.Frame) error {
	if w.relay == nil || w.in.Buffered() > 0 {
		return w.frame(f)
	}
	w.mu.Lock()
	w.catching = true
	w.mu.Unlock()
	err := w.frame(f)
	w.mu.Lock()
	m := w.caught
	w.caught, w.catching = nil, false
	w.mu.Unlock()
	switch {
	case m == nil:
		return err
	case err != nil || !w.relay.Leave():
		w.run.serve(m)
		return err
	}
	w.run.serveHere(m)
	if !w.relay.Back() {
		return errRelieved
	}
	return nil
}

// frame acts on one frame without running JavaScript.
func (w *worker) frame(f wire.Frame) error {
	switch f.Kind {
	case wire.Load:
		return w.frameLoad(f)
	case wire.Apply, wire.Invoke:
		return w.frameCall(f)
	case wire.Unload:
		return w.frameUnload(f)
	case wire.Settle:
		w.frameSettle(f)
	case wire.Reply:
		w.frameReply(f)
	case wire.Cancel:
		w.frameCancel(f)
	case wire.Bind:
		name, binding := f.Name, string(f.Payload)
		w.frameOneWay(f, "bind", "bind", runText(f.Run), name, binding)
	case wire.Retire:
		w.frameRetire(f)
	case wire.Ping:
		w.send(wire.Frame{Kind: wire.Pong, ID: f.ID})
	case wire.Quit:
		return errQuit
	default:
		return fmt.Errorf("%w: a frame of kind %d", ErrProtocol, f.Kind)
	}
	return nil
}

// send writes a frame whose size is bounded by what it is. A connection that is
// gone ends the worker.
func (w *worker) send(f wire.Frame) {
	if err := w.out.Write(f); err != nil {
		w.fail(err)
	}
}

// trySend is send for a frame whose size the VM decides: too large is returned.
func (w *worker) trySend(f wire.Frame) error {
	err := w.out.Write(f)
	if err != nil && !errors.Is(err, wire.ErrTooLarge) {
		w.fail(err)
	}
	return err
}

func (w *worker) nextID() uint64 { return w.lastID.Add(1) }
