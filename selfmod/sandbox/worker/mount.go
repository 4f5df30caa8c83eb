package worker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/compile"
)

// mount is one VM and what waits for it.
type mount struct {
	w     *worker
	id    uint32
	label string // "dyn-1": how texts name it
	limit time.Duration
	load  wire.LoadRequest

	// Guarded by worker.mu.
	owner   *thread
	queue   []*ticket
	depth   int    // entries in the VM
	top     *entry // the innermost of them
	calls   map[uint64]*call
	asyncs  map[uint64]*async
	unload  *call       // the Unload that waits for the VM
	spentBy *wire.Fault // the VM is to be closed
	left    func()      // the VM has been, and has given back its memory
	dead    *wire.Fault // the VM is closed: what every later use gets

	// Of the owner alone; vm is assigned with worker.mu held, too.
	vm         *qjs.VM
	clock      clock
	positions  *compile.Positions
	interrupts uint32 // entries interrupted in a row
	timeouts   int    // entries interrupted at their deadline, ever
	done       []answer
	lates      map[uint64]uint64 // rejection → id of its Late
	runs       map[uint32]struct{}
	peers      map[*mount]struct{}
	promises   map[string]promise
	lines      bucket
	progress   bucket
}

// closes reports whether the VM is to be closed when its thread leaves it.
func (m *mount) closes() bool { return m.dead == nil && (m.unload != nil || m.spentBy != nil) }

// interruptVM stops the VM's running entry. Called with worker.mu held.
func (m *mount) interruptVM() {
	if m.vm != nil {
		m.vm.Interrupt()
		m.vm.Poke()
	}
}

func runText(run uint32) string { return strconv.FormatUint(uint64(run), 10) }

// frameLoad makes the mount and queues its body.
func (w *worker) frameLoad(f wire.Frame) error {
	m := &mount{
		w: w, id: f.Mount, label: fmt.Sprintf("mount %d", f.Mount),
		calls: map[uint64]*call{}, asyncs: map[uint64]*async{}, lates: map[uint64]uint64{},
		runs: map[uint32]struct{}{}, peers: map[*mount]struct{}{}, promises: map[string]promise{},
	}
	var err error
	if m.load, err = wire.CutLoad(f.Payload); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if m.load.ID != "" {
		m.label = m.load.ID
	}
	if m.load.File == "" {
		m.load.File = "plugin.js"
	}
	if m.load.MemoryMB <= 0 {
		m.load.MemoryMB = limits.VMMemoryMB
	}
	if m.limit = m.load.VMTimeout; m.limit <= 0 {
		m.limit = limits.VMTimeout
	}
	w.mu.Lock()
	if w.mounts[m.id] != nil {
		w.mu.Unlock()
		return fmt.Errorf("%w: load of mount %d, which is there", ErrProtocol, m.id)
	}
	w.mounts[m.id] = m
	w.mu.Unlock()
	c, err := w.newCall(f, m, "load")
	if err != nil {
		return err
	}
	c.ahead = m.load.Apply != 0
	e := &entry{m: m, call: c, chain: f.Chain, name: "load", answers: true}
	e.dispatch = func() (string, bool, error) { return m.body(c) }
	w.start(c, e)
	return nil
}

// equip gives the mount its VM.
func (w *worker) equip(m *mount) *wire.Fault {
	w.spare.settle()
	vm, err := w.spare.take(m.load.MemoryMB, w.parts.hinted(m.text()))
	if err != nil {
		return &wire.Fault{Name: "Error", Code: wire.CodeMemory, Message: fmt.Sprintf("no VM for %s: %v", m.label, err)}
	}
	vm.SetHost(m.host)
	vm.SetGrown(m.grown)
	m.clock.init(vm, func() { w.poke(m) }, func() { w.stuck(m) })
	w.mu.Lock()
	m.vm = vm
	w.mu.Unlock()
	return nil
}

// grown tells the host how large the heap has become, so that it knows who used
// up the worker's memory if that ends. It runs inside the engine.
func (m *mount) grown(size int64) {
	f := wire.Frame{Kind: wire.Send, Mount: m.id, Name: wire.VerbHeap, Payload: strconv.AppendInt(nil, size, 10)}
	if m.top != nil {
		f.Chain, f.Run = m.top.chain, m.top.run
	}
	m.w.send(f)
}

// text is all that the author wrote.
func (m *mount) text() string {
	if m.load.Entry == "" {
		return m.load.Source
	}
	return strings.Join(slices.Collect(maps.Values(m.load.Files)), "\n")
}

func (m *mount) compile() (*compile.Unit, error) {
	if m.load.Entry != "" {
		return compile.Module(m.vm, m.load.Files, m.load.Entry, m.load.File)
	}
	return compile.Source(m.vm, m.load.Source, m.load.File)
}

// body compiles the source and calls it.
func (m *mount) body(c *call) (string, bool, error) {
	unit, err := m.compile()
	if err != nil {
		return "", false, err
	}
	m.positions = unit.Positions
	if unit.Module {
		c.typeScript = unit.TypeScript
		return m.module(c, unit.Code)
	}
	fn, err := m.vm.RunScript(unit.Code)
	if err != nil {
		return "", false, err
	}
	defer fn.Free()
	if !fn.IsFunction() {
		return "", false, &wire.Fault{Name: "SyntaxError", Code: wire.CodeSyntax,
			Message: "a bracket that nothing opened ends the function that the code runs in"}
	}
	c.typeScript = unit.TypeScript
	return m.vm.Call("load", c.text, fn, runText(m.id))
}

// module runs a module and has the prelude take what it exports.
func (m *mount) module(c *call, code qjs.Script) (string, bool, error) {
	defer code.Free()
	if _, _, err := m.vm.Call("open", c.text); err != nil {
		return "", false, err
	}
	exported, end, err := m.vm.RunModule(code)
	if err != nil {
		return "", false, err
	}
	defer exported.Free()
	defer end.Free()
	return m.vm.Call("module", c.text, exported, end)
}

// poke makes the engine look at its clock. It runs on the watchdog's goroutine;
// a VM that is closed has been taken from its mount under the lock.
func (w *worker) poke(m *mount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.vm != nil {
		m.vm.Poke()
	}
}

// stuck tells the host that the VM is past its limit. It runs on the watchdog's
// goroutine.
func (w *worker) stuck(m *mount) {
	w.mu.Lock()
	e := m.top
	if e == nil {
		w.mu.Unlock()
		return
	}
	f := wire.Frame{Kind: wire.Stuck, Chain: e.chain, Mount: m.id, Run: e.run, Name: e.name}
	if c := e.origin(); c != nil {
		f.ID = c.id
	}
	w.mu.Unlock()
	w.send(f)
}

// frameUnload closes the VM as soon as its thread leaves it, which it is told to.
func (w *worker) frameUnload(f wire.Frame) error {
	w.mu.Lock()
	m := w.mounts[f.Mount]
	w.mu.Unlock()
	c, err := w.newCall(f, m, "unload")
	if err != nil {
		return err
	}
	w.mu.Lock()
	switch {
	case m == nil:
		w.mu.Unlock()
		w.refuse(c, noMount(f.Mount))
	case m.unload != nil:
		w.mu.Unlock()
		return fmt.Errorf("%w: a second unload of mount %d", ErrProtocol, m.id)
	case m.dead != nil:
		delete(w.mounts, m.id)
		w.mu.Unlock()
		w.result(c, wire.Ok(nil), wire.Stats{}, 0)
	default:
		m.unload = c
		if m.owner == nil {
			w.own(m)
		} else {
			m.interrupt()
		}
		w.mu.Unlock()
	}
	return nil
}

func noMount(id uint32) *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeNoMount, Message: fmt.Sprintf("there is no mount %d", id)}
}

// closeMount closes the VM of a mount that was unloaded or is spent, and answers
// everything that waits for it. The caller's thread owns the VM and gives it up.
func (w *worker) closeMount(m *mount) {
	w.mu.Lock()
	unload := m.unload
	if m.dead = goneFault(m); unload == nil {
		m.dead.Message = m.label + " is gone: " + m.spentBy.Message
	} else {
		delete(w.mounts, m.id)
	}
	queue := m.queue
	m.queue, m.owner = nil, nil
	for id := range m.asyncs {
		delete(w.asyncs, id)
	}
	clear(m.asyncs)
	calls := slices.SortedFunc(maps.Values(m.calls), func(a, b *call) int { return cmp.Compare(a.id, b.id) })
	for _, tk := range queue {
		if tk.thread != nil {
			tk.err, tk.wait.vm = m.dead, nil
			close(tk.ready)
		}
	}
	vm := m.vm
	m.vm = nil
	w.mu.Unlock()
	for _, c := range calls {
		if c != unload {
			w.refuse(c, m.dead)
		}
	}
	if vm != nil {
		m.clock.stop()
	}
	w.leavePeers(m)
	if vm != nil && m.left == nil {
		m.left = w.spare.leave(vm)
	}
	if unload != nil { // none of its code can run any more; nobody needs to wait for its memory
		w.result(unload, wire.Ok(nil), wire.Stats{}, 0)
	}
	if vm != nil {
		w.spare.retire(vm)
		m.left()
	}
}

// leaveLimit is how long a Load waits for memory to be given back.
const leaveLimit = 2 * time.Second

// leave is told, before anybody else, that a VM is to be closed: its successor is not
// to look for memory while it still has it. It returns what is to be called then.
func (s *spares) leave(vm *qjs.VM) (gone func()) {
	if size, _ := vm.Memory(); size <= maxOldBytes || vm.Broken() { // that one gives back nothing
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving++; s.leaving == 1 {
		s.left = make(chan struct{})
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.leaving--; s.leaving == 0 {
			close(s.left)
		}
	}
}

// settle waits until those that leave have left. One may be held up by a call
// that waits for the caller's mount, so there is a limit.
func (s *spares) settle() {
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	if left == nil {
		return
	}
	t := time.NewTimer(leaveLimit)
	defer t.Stop()
	select {
	case <-left:
	case <-t.C:
	case <-s.w.done:
	}
}
