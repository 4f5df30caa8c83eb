package worker

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/lock"
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

// serveHere serves the mount on the reader's goroutine, which has left.
func (x *executors) serveHere(m *mount) {
	x.mu.Lock()
	if x.stopped {
		x.mu.Unlock()
		return
	}
	x.busy++
	x.wg.Add(1)
	x.mu.Unlock()
	x.w.serve(m, true)
	x.mu.Lock()
	x.busy--
	idle := x.busy == 0
	x.mu.Unlock()
	x.wg.Done()
	if idle {
		x.w.spare.kick()
	}
}

func (x *executors) loop(ch chan *mount) {
	defer x.wg.Done()
	debug.SetPanicOnFault(true)
	for m := range ch {
		x.w.serve(m, false)
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

// alone reports whether only one goroutine runs JavaScript.
func (x *executors) alone() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.busy == 1
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

// compilePrelude returns the bytecode of the prelude's core or of a part: it comes
// with the program, unless the script is another one.
func compilePrelude(source string) ([]byte, error) {
	if code := prelude.Bytecode(source, qjs.EngineVersion); code != nil && littleEndian() {
		return code, nil
	}
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

// littleEndian reports whether the engine's bytecode of such machines fits.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// preludeFile is the name of the prelude in stacks; package compile drops its frames.
const preludeFile = "prelude.js"

// newVM returns a VM that has run the prelude and the part, "" for none.
func (w *worker) newVM(memoryMB int, part string) (*qjs.VM, error) {
	vm, err := qjs.New(qjs.Options{MemoryLimit: int64(memoryMB) << 20, MaxStackSize: qjs.DefaultStack})
	if err != nil {
		return nil, err
	}
	if err := vm.EvalBytecode(w.prelude); err != nil {
		vm.Close()
		return nil, fmt.Errorf("run prelude: %w", err)
	}
	if part != "" {
		if err := w.parts.run(vm, part); err != nil {
			vm.Close()
			return nil, err
		}
	}
	return vm, nil
}

// spares keeps VMs ready, so that a mount does not wait for one: as many that
// have run a part with a hint as of those that have run none. They are made one
// at a time while nothing else runs, from the first Load on, with the memory
// limit of the last Load. VMs that are of no more use are closed then, too. Both
// wait until nothing has run for a while, as long as some are ready: what runs
// next should not have to share the processor with them.
type spares struct {
	w        *worker
	kinds    []string // the parts, "" first
	want     int
	wake     chan struct{}
	finished chan struct{}

	mu       sync.Mutex
	memoryMB int
	ready    map[string][]*qjs.VM // by kind
	old      []*qjs.VM            // to be closed
	stopped  bool
	rest     *time.Timer   // wakes
	leaving  int           // VMs with much memory that are about to be closed
	left     chan struct{} // closed when there is none of them
}

const (
	// restAfter is how long nothing must have run.
	restAfter = 2 * time.Millisecond
	// fewSpares are made without waiting for that.
	fewSpares = 2
	// maxOld and maxOldBytes bound what waits to be closed.
	maxOld      = 8
	maxOldBytes = 2 << 20
)

func newSpares(w *worker, want int) *spares {
	switch {
	case want == 0:
		want = DefaultSpare
	case want < 0:
		want = 0
	}
	s := idleSpares(w, want)
	go s.fill()
	return s
}

// idleSpares is newSpares without the goroutine.
func idleSpares(w *worker, want int) *spares {
	s := &spares{
		w: w, kinds: append([]string{""}, w.parts.hints()...), want: want, wake: make(chan struct{}, 1),
		finished: make(chan struct{}), ready: map[string][]*qjs.VM{},
	}
	s.rest = time.AfterFunc(time.Hour, s.work)
	s.rest.Stop()
	return s
}

// take returns a VM with the memory limit, if it can be one that is ready, and of
// the kind if there is a choice.
func (s *spares) take(memoryMB int, kind string) (*qjs.VM, error) {
	s.mu.Lock()
	var stale map[string][]*qjs.VM
	if s.memoryMB != memoryMB {
		s.memoryMB, stale, s.ready = memoryMB, s.ready, map[string][]*qjs.VM{}
	}
	vm := s.pop(kind)
	for i := 0; vm == nil && i < len(s.kinds); i++ {
		vm = s.pop(s.kinds[i])
	}
	s.mu.Unlock()
	closeAll(stale)
	if vm != nil {
		return vm, nil
	}
	return s.w.newVM(memoryMB, kind)
}

// pop takes a ready VM of the kind, nil for none. Called with mu held.
func (s *spares) pop(kind string) *qjs.VM {
	list := s.ready[kind]
	n := len(list)
	if n == 0 {
		return nil
	}
	vm := list[n-1]
	list[n-1] = nil
	s.ready[kind] = list[:n-1]
	return vm
}

func closeAll(ready map[string][]*qjs.VM) {
	for _, list := range ready {
		for _, vm := range list {
			vm.Close()
		}
	}
}

// kick is told that nothing runs.
func (s *spares) kick() {
	s.mu.Lock()
	n := s.count()
	idle := s.stopped || s.memoryMB == 0 || n >= s.want && len(s.old) == 0
	soon := n < min(fewSpares, s.want)
	if !idle && !soon {
		s.rest.Reset(restAfter)
	}
	s.mu.Unlock()
	if !idle && soon {
		s.work()
	}
}

// retire closes a VM that nothing uses any more, later if that can wait.
func (s *spares) retire(vm *qjs.VM) {
	size, _ := vm.Memory()
	s.mu.Lock()
	later := !s.stopped && s.want > 0 && len(s.old) < maxOld && size <= maxOldBytes && !vm.Broken()
	if later {
		s.old = append(s.old, vm)
	}
	s.mu.Unlock()
	if !later {
		vm.Close()
		lock.Keep()
	}
}

// useless takes a VM that is to be closed, nil for none.
func (s *spares) useless() *qjs.VM {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.old)
	if n == 0 {
		return nil
	}
	vm := s.old[n-1]
	s.old[n-1] = nil
	s.old = s.old[:n-1]
	return vm
}

// work lets the goroutine of the spares look what there is to do.
func (s *spares) work() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// missing returns the memory limit and the kind of the VM to make next; a limit of
// 0 for none.
func (s *spares) missing() (memoryMB int, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.count() >= s.want {
		return 0, ""
	}
	for _, k := range s.kinds[1:] {
		if len(s.ready[k]) < len(s.ready[kind]) {
			kind = k
		}
	}
	return s.memoryMB, kind
}

// count is how many VMs are ready. Called with mu held.
func (s *spares) count() (n int) {
	for _, list := range s.ready {
		n += len(list)
	}
	return n
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
			if vm := s.useless(); vm != nil {
				vm.Close()
				continue
			}
			memoryMB, kind := s.missing()
			if memoryMB == 0 {
				break
			}
			vm, err := s.w.newVM(memoryMB, kind)
			if err != nil {
				break // the next Load makes its own and reports why it cannot
			}
			s.put(vm, memoryMB, kind)
		}
	}
}

func (s *spares) put(vm *qjs.VM, memoryMB int, kind string) {
	s.mu.Lock()
	keep := !s.stopped && s.memoryMB == memoryMB && s.count() < s.want
	if keep {
		s.ready[kind] = append(s.ready[kind], vm)
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
	s.rest.Stop()
	ready := s.ready
	s.ready = nil
	s.mu.Unlock()
	closeAll(ready)
	for vm := s.useless(); vm != nil; vm = s.useless() {
		vm.Close()
	}
}

// parts are what the prelude's core asks for when it is first needed, compiled
// once for all VMs, when the first of them asks.
type parts struct {
	all  []prelude.Part
	mu   sync.Mutex
	code map[string][]byte
}

func newParts(all []prelude.Part) *parts { return &parts{all: all, code: map[string][]byte{}} }

// hints returns the parts that have one.
func (p *parts) hints() (names []string) {
	for _, one := range p.all {
		if one.Hint != "" {
			names = append(names, one.Name)
		}
	}
	return names
}

// hinted returns the part that the plugin will likely ask for, "" for none.
func (p *parts) hinted(source string) string {
	for _, one := range p.all {
		if one.Hint != "" && strings.Contains(source, one.Hint) {
			return one.Name
		}
	}
	return ""
}

// bytecode returns a part's bytecode.
func (p *parts) bytecode(name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if code, ok := p.code[name]; ok {
		return code, nil
	}
	i := slices.IndexFunc(p.all, func(one prelude.Part) bool { return one.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the prelude has no part %q", name)
	}
	code, err := compilePrelude(p.all[i].Source)
	if err != nil {
		return nil, err
	}
	p.code[name] = code
	return code, nil
}

// run runs a part in the VM and hands its value to the dispatcher.
func (p *parts) run(vm *qjs.VM, name string) error {
	code, err := p.bytecode(name)
	if err != nil {
		return err
	}
	v, err := vm.RunBytecode(code)
	if err != nil {
		return fmt.Errorf("run part %s of the prelude: %w", name, err)
	}
	defer v.Free()
	_, _, err = vm.Call("part", name, v)
	return err
}
