package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// call is what the host asked for and waits for the Result of.
type call struct {
	id, chain uint64
	text      string // the id as the prelude knows it
	m         *mount // nil when the frame named none that is there
	run       uint32
	name      string

	// Guarded by worker.mu.
	cancelled bool

	// Of the thread that owns the VM.
	ahead      bool // a load that may be followed by its apply
	typeScript bool
	phases     int
	phase      string // the name of the last one; "" before the first
	phaseTold  string // what the host knows of it
	engine     time.Duration
	timeouts   int // of the mount when it was entered
}

// answer is what done said of a call.
type answer struct {
	call *call
	text string
}

// newCall registers the call that the frame asks for.
func (w *worker) newCall(f wire.Frame, m *mount, name string) (*call, error) {
	c := &call{id: f.ID, chain: f.Chain, text: strconv.FormatUint(f.ID, 10), m: m, run: f.Run, name: name}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[c.id] != nil {
		return nil, fmt.Errorf("%w: call %d is running already", ErrProtocol, c.id)
	}
	w.calls[c.id] = c
	if m != nil {
		m.calls[c.id] = c
	}
	return c, nil
}

// frameCall queues an Apply or an Invoke.
func (w *worker) frameCall(f wire.Frame) error {
	w.mu.Lock()
	m := w.mounts[f.Mount]
	w.mu.Unlock()
	name := f.Name
	if f.Kind == wire.Apply {
		name = "apply"
	}
	var fn uint32
	var args []byte
	if f.Kind == wire.Invoke {
		var err error
		if fn, args, err = wire.CutInvoke(f.Payload); err != nil {
			return fmt.Errorf("%w: %w", ErrProtocol, err)
		}
	}
	c, err := w.newCall(f, m, name)
	if err != nil {
		return err
	}
	if m == nil {
		w.refuse(c, noMount(f.Mount))
		return nil
	}
	if f.Kind == wire.Apply {
		w.start(c, applying(c, string(f.Payload)))
		return nil
	}
	e := &entry{m: m, call: c, chain: f.Chain, run: f.Run, name: name, answers: true, nests: f.Flags&wire.FlagLater == 0}
	e.dispatch = func() (string, bool, error) {
		return m.vm.Call("invoke", c.text, name, strconv.FormatUint(uint64(fn), 10), string(args))
	}
	w.start(c, e)
	return nil
}

// applying is the entry of an apply.
func applying(c *call, bindings string) *entry {
	m := c.m
	return &entry{m: m, call: c, chain: c.chain, run: c.run, name: c.name, answers: true, trims: true, dispatch: func() (string, bool, error) {
		m.runs[c.run] = struct{}{}
		return m.vm.Call("apply", c.text, runText(c.run), bindings)
	}}
}

// ahead is the apply that follows a load which ends with value, nil for none.
func (w *worker) ahead(load *call, value []byte) (apply *call, bindings string) {
	m := load.m
	if value[0] != '=' || m.spentBy != nil || !w.open(load) {
		return nil, ""
	}
	w.mu.Lock()
	cancelled := load.cancelled
	w.mu.Unlock()
	loaded, err := wire.ReadLoaded(value[1:])
	if err != nil || cancelled || loaded.Config != "" {
		return nil, ""
	}
	bindings, ok := liveBindings(loaded.Inject, m.load.Live)
	if !ok {
		return nil, ""
	}
	apply, err = w.newCall(wire.Frame{ID: m.load.Apply, Chain: m.load.Apply, Run: m.load.Run}, m, "apply")
	if err != nil {
		w.fail(err)
		return nil, ""
	}
	return apply, bindings
}

// liveBindings picks what the plugin injects, if all of that is live.
func liveBindings(inject []wire.Inject, live string) (string, bool) {
	b := []byte{'{'}
	for i, d := range inject {
		if i > 0 {
			b = append(b, ',')
		}
		found := false
		wire.CutObject([]byte(live), func(key, part []byte) bool {
			if !found && string(key) == d.Name {
				found = true
				b = append(append(append(append(b, '"'), key...), `":`...), part...)
			}
			return true
		})
		if !found || d.Optional || d.Config != nil {
			return "", false
		}
	}
	return string(append(b, '}')), true
}

// start queues the entry that a call begins with.
func (w *worker) start(c *call, e *entry) {
	if !w.enqueue(e, false) {
		w.mu.Lock()
		fault := c.m.dead
		if fault == nil {
			fault = goneFault(c.m)
		}
		w.mu.Unlock()
		w.refuse(c, fault)
	}
}

// frameCancel stops what runs of a call and lets its signal fire. A call that
// has not begun is answered at once.
func (w *worker) frameCancel(f wire.Frame) {
	w.mu.Lock()
	c := w.calls[f.ID]
	if c == nil || c.m == nil || c.cancelled || c == c.m.unload {
		w.mu.Unlock()
		return
	}
	m := c.m
	c.cancelled = true
	for i, tk := range m.queue {
		if tk.entry != nil && tk.entry.call == c && tk.entry.answers {
			m.queue = slices.Delete(m.queue, i, i+1)
			w.mu.Unlock()
			w.refuse(c, cancelledFault(m, c.name+" was cancelled before it began"))
			return
		}
	}
	if o := m.owner; o != nil {
		o.interruptFrom(slices.IndexFunc(o.frames, func(e *entry) bool { return e.call == c }))
	}
	w.enqueueLocked(&entry{m: m, chain: c.chain, run: c.run, name: "abort", dispatch: func() (string, bool, error) {
		if !w.open(c) {
			return "", false, nil
		}
		return m.vm.Call("abort", c.text, reasonText(f.Payload))
	}}, true)
	w.mu.Unlock()
}

// reasonText is what the signal's reason says.
func reasonText(payload []byte) string {
	if len(payload) == 0 {
		return "the call was cancelled"
	}
	return string(payload)
}

func cancelledFault(m *mount, what string) *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeCancelled, Message: m.label + ": " + what}
}

// open reports whether the call still waits for its Result.
func (w *worker) open(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[c.id] == c
}

// finish sends the call's Result, unless it has been sent, with what the call
// cost. Only the thread that owns the VM may.
func (w *worker) finish(c *call, value []byte, verdict, flags uint8) bool {
	if value[0] == '!' {
		w.tellPhase(c)
	}
	s := wire.Stats{Engine: c.engine, Verdict: verdict, Interrupts: c.m.interrupts}
	if c.m.vm != nil {
		s.Heap, _ = c.m.vm.Memory()
	}
	if !c.ahead {
		return w.result(c, value, s, flags)
	}
	next, bindings := w.ahead(c, value)
	if next == nil {
		return w.result(c, value, s, flags)
	}
	told := w.result(c, value, s, flags|wire.FlagAhead)
	w.start(next, applying(next, bindings))
	return told
}

// tellPhase says in which phase the call is, for the text of its error. Calls
// that end well are spared the frame.
func (w *worker) tellPhase(c *call) {
	if c.phase == c.phaseTold || !w.open(c) {
		return
	}
	c.phaseTold = c.phase
	w.send(wire.Frame{Kind: wire.Send, ID: c.id, Chain: c.chain, Mount: c.m.id, Run: c.run, Name: wire.VerbPhase, Payload: []byte(c.phase)})
}

// refuse is finish for a call that costs nothing, from any goroutine.
func (w *worker) refuse(c *call, fault *wire.Fault) {
	w.result(c, failed(fault), wire.Stats{}, 0)
}

func (w *worker) result(c *call, value []byte, s wire.Stats, flags uint8) bool {
	f := wire.Frame{Kind: wire.Result, Flags: flags, ID: c.id, Chain: c.chain, Run: c.run}
	w.mu.Lock()
	if w.calls[c.id] != c {
		w.mu.Unlock()
		return false
	}
	delete(w.calls, c.id)
	if c.m != nil {
		delete(c.m.calls, c.id)
		f.Mount = c.m.id
	}
	w.mu.Unlock()
	f.Payload = wire.AppendStats(nil, s, value)
	if errors.Is(w.trySend(f), wire.ErrTooLarge) {
		f.Payload = wire.AppendStats(nil, s, failed(tooLarge("the result")))
		w.send(f)
	}
	return true
}

func failed(f *wire.Fault) []byte { return wire.Failed(f) }

// value turns a value text of the prelude into a Result's payload: a failure's
// stack becomes the author's positions.
func (m *mount) value(c *call, text string) ([]byte, uint8) {
	switch {
	case text == "":
	case text[0] == '=':
		if c.typeScript && len(text) > 2 && text[1] == '{' {
			return []byte(`={"typescript":true,` + text[2:]), wire.VerdictNone
		}
		return []byte(text), wire.VerdictNone
	case text[0] == '!':
		f := m.fault(text[1:])
		if m.wasInterrupted(c, f) {
			return failed(m.timeoutFault(c.name)), wire.VerdictTimeout
		}
		return failed(f), wire.VerdictNone
	}
	return failed(&wire.Fault{Name: "Error", Message: m.label + ": the prelude answered with no value"}), wire.VerdictNone
}

// fault reads a failure of the prelude.
func (m *mount) fault(text string) *wire.Fault {
	f := new(wire.Fault)
	if err := json.Unmarshal([]byte(text), f); err != nil {
		return &wire.Fault{Name: "Error", Message: "<unprintable thrown value>", Raw: true}
	}
	f.Frames, f.Excerpt = m.positions.Frames(f.Stack), ""
	f.Stack = ""
	if f.Name == "ReferenceError" && strings.HasPrefix(f.Message, "could not load module ") {
		hint := importHint
		if m.load.Entry != "" {
			hint = fileImportHint
		}
		f.Message += hint
	}
	return f
}

// importHint follows the engine's own message about import(…), which says only
// that the module could not be loaded; fileImportHint does in a plugin file.
const (
	importHint     = ": import() is not available in the temporary Plugin sandbox; reach services with inject: ['fs', …] and ctx"
	fileImportHint = ": import() is not available in a plugin; write `import … from './file.js'` at the top of the file, and reach services with inject: ['fs', …] and ctx"
)

// wasInterrupted recognises the rejection that the engine makes of an interrupt
// inside an async function, which reaches the call by way of done.
func (m *mount) wasInterrupted(c *call, f *wire.Fault) bool {
	return f.Name == "InternalError" && f.Message == "interrupted" && m.timeouts > c.timeouts
}

func (m *mount) timeoutFault(entry string) *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeVMTimeout, Message: fmt.Sprintf(
		"%s: %s did not return within %d ms inside the engine (vmTimeout) and was stopped", m.label, entry, m.limit.Milliseconds())}
}

// thrown is the fault of an error that came out of the engine itself.
func (m *mount) thrown(e *qjs.Error) *wire.Fault {
	f := &wire.Fault{Name: e.Name, Message: e.Message, Code: e.Code, Frames: m.positions.Frames(e.Stack), Raw: e.Name == "" && e.Stack == ""}
	if e.Kind == qjs.KindStackOverflow {
		f.Code = wire.CodeStack
	}
	return f
}

func tooLarge(what string) *wire.Fault {
	return &wire.Fault{Name: "RangeError", Code: wire.CodeTooLarge, Message: what + " is too large to leave the worker"}
}
