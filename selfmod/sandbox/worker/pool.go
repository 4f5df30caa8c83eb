package worker

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
)

// maxIdle is how many executors are kept for the next entry.
const maxIdle = 16

// stopLimit is how long Serve waits for entries that were interrupted.
const stopLimit = time.Second

// executors are the goroutines that run JavaScript. They are reused: the engine
// needs deep goroutine stacks, which are costly to grow again.
type executors struct {
	w       *worker
	mu      sync.Mutex
	idle    []chan *mount
	busy    int
	stopped bool
	wg      sync.WaitGroup
}

func (x *executors) init(w *worker) { x.w = w }

// serve lets an executor serve the mount, which is owned by a new thread.
func (x *executors) serve(m *mount) {
	x.mu.Lock()
	if x.stopped {
		x.mu.Unlock()
		return
	}
	x.busy++
	if n := len(x.idle); n > 0 {
		ch := x.idle[n-1]
		x.idle = x.idle[:n-1]
		x.mu.Unlock()
		ch <- m
		return
	}
	x.wg.Add(1)
	x.mu.Unlock()
	ch := make(chan *mount, 1)
	ch <- m
	go x.loop(ch)
}

func (x *executors) loop(ch chan *mount) {
	defer x.wg.Done()
	debug.SetPanicOnFault(true)
	for m := range ch {
		x.w.serve(m)
		if !x.park(ch) {
			return
		}
	}
}

// park makes the executor idle; false tells it to end.
func (x *executors) park(ch chan *mount) bool {
	x.mu.Lock()
	x.busy--
	idle := x.busy == 0
	keep := !x.stopped && len(x.idle) < maxIdle
	if keep {
		x.idle = append(x.idle, ch)
	}
	x.mu.Unlock()
	if idle {
		x.w.spare.kick()
	}
	return keep
}

func (x *executors) isIdle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.busy == 0
}

// stop ends the executors and reports whether all have ended in time.
func (x *executors) stop() bool {
	x.mu.Lock()
	x.stopped = true
	for _, ch := range x.idle {
		close(ch)
	}
	x.idle = nil
	x.mu.Unlock()
	ended := make(chan struct{})
	go func() { x.wg.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-time.After(stopLimit):
		return false
	}
}

// compilePrelude returns the prelude's bytecode.
func compilePrelude(source string) ([]byte, error) {
	vm, err := qjs.New(qjs.Options{})
	if err != nil {
		return nil, fmt.Errorf("compile prelude: %w", err)
	}
	defer vm.Close()
	code, err := vm.CompileStripped(source, preludeFile)
	if err != nil {
		return nil, fmt.Errorf("compile prelude: %w", err)
	}
	return code, nil
}

// preludeFile is the name of the prelude in stacks; package compile drops its frames.
const preludeFile = "prelude.js"

// newVM returns a VM that has run the prelude.
func (w *worker) newVM(memoryMB int) (*qjs.VM, error) {
	vm, err := qjs.New(qjs.Options{MemoryLimit: int64(memoryMB) << 20, MaxStackSize: qjs.DefaultStack})
	if err != nil {
		return nil, err
	}
	if err := vm.EvalBytecode(w.prelude); err != nil {
		vm.Close()
		return nil, fmt.Errorf("run prelude: %w", err)
	}
	return vm, nil
}

// spares keeps VMs ready, so that a mount does not wait for one. They are made
// one at a time while nothing else runs, from the first Load on, with the memory
// limit of the last Load.
type spares struct {
	w        *worker
	want     int
	wake     chan struct{}
	finished chan struct{}

	mu       sync.Mutex
	memoryMB int
	ready    []*qjs.VM
	stopped  bool
}

func newSpares(w *worker, want int) *spares {
	switch {
	case want == 0:
		want = DefaultSpare
	case want < 0:
		want = 0
	}
	s := &spares{w: w, want: want, wake: make(chan struct{}, 1), finished: make(chan struct{})}
	go s.fill()
	return s
}

// take returns a VM with the memory limit: a ready one or a new one.
func (s *spares) take(memoryMB int) (*qjs.VM, error) {
	s.mu.Lock()
	var stale []*qjs.VM
	if s.memoryMB != memoryMB {
		s.memoryMB, stale, s.ready = memoryMB, s.ready, nil
	}
	var vm *qjs.VM
	if n := len(s.ready); n > 0 {
		vm, s.ready = s.ready[n-1], s.ready[:n-1]
	}
	s.mu.Unlock()
	for _, old := range stale {
		old.Close()
	}
	if vm != nil {
		return vm, nil
	}
	return s.w.newVM(memoryMB)
}

// kick is told that nothing runs.
func (s *spares) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// missing returns the memory limit of the VM to make next, 0 for none.
func (s *spares) missing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || len(s.ready) >= s.want {
		return 0
	}
	return s.memoryMB
}

func (s *spares) fill() {
	defer close(s.finished)
	debug.SetPanicOnFault(true)
	for {
		select {
		case <-s.wake:
		case <-s.w.done:
			return
		}
		for s.w.run.isIdle() {
			memoryMB := s.missing()
			if memoryMB == 0 {
				break
			}
			vm, err := s.w.newVM(memoryMB)
			if err != nil {
				break // the next Load makes its own and reports why it cannot
			}
			s.put(vm, memoryMB)
		}
	}
}

func (s *spares) put(vm *qjs.VM, memoryMB int) {
	s.mu.Lock()
	keep := !s.stopped && s.memoryMB == memoryMB && len(s.ready) < s.want
	if keep {
		s.ready = append(s.ready, vm)
	}
	s.mu.Unlock()
	if !keep {
		vm.Close()
	}
}

// stop closes the ready VMs; worker.done is closed.
func (s *spares) stop() {
	<-s.finished
	s.mu.Lock()
	s.stopped = true
	ready := s.ready
	s.ready = nil
	s.mu.Unlock()
	for _, vm := range ready {
		vm.Close()
	}
}

// parts are what the prelude's core asks for when it is first needed, compiled
// once for all VMs, when the first of them asks.
type parts struct {
	mu     sync.Mutex
	source map[string]string
	code   map[string][]byte
}

func newParts(all []prelude.Part) *parts {
	p := &parts{source: map[string]string{}, code: map[string][]byte{}}
	for _, one := range all {
		p.source[one.Name] = one.Source
	}
	return p
}

// bytecode returns a part's bytecode.
func (p *parts) bytecode(name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if code, ok := p.code[name]; ok {
		return code, nil
	}
	source, ok := p.source[name]
	if !ok {
		return nil, fmt.Errorf("the prelude has no part %q", name)
	}
	code, err := compilePrelude(source)
	if err != nil {
		return nil, err
	}
	p.code[name] = code
	return code, nil
}

// opPart runs a part in the VM that asks and hands its value to the dispatcher.
func (m *mount) opPart(name string) error {
	code, err := m.w.parts.bytecode(name)
	if err != nil {
		return err
	}
	v, err := m.vm.RunBytecode(code)
	if err != nil {
		return fmt.Errorf("run part %s of the prelude: %w", name, err)
	}
	defer v.Free()
	_, _, err = m.vm.Call("part", name, v)
	return err
}
