package worker

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// Bounds on what one VM asks for.
const (
	maxAsyncs   = 1000   // unanswered requests to the host
	maxPromises = 10_000 // unsettled promises given to other mounts
	maxPhases   = 4      // times a call may get a new limit
	maxAsk      = wire.MaxAsk
)

// reply is a thread's wait for the host's answer.
type reply struct {
	ready chan struct{}
	text  string
}

// async is a request whose answer the VM does not wait for.
type async struct {
	m     *mount
	call  *call // who asked, as far as known
	chain uint64
	run   uint32
}

// host answers the prelude's __host. It runs on the thread that owns the VM.
func (m *mount) host(op string, args []string) (string, bool, error) {
	want, ok := arity[op]
	if !ok {
		return "", false, fmt.Errorf("__host: no operation %q", op)
	}
	if len(args) < want {
		return "", false, fmt.Errorf("__host: %s takes %d arguments, got %d", op, want, len(args))
	}
	switch op {
	case "done":
		return "", false, m.opDone(args[0], args[1])
	case "phase":
		m.opPhase(args[0], args[1])
	case "sync":
		return m.opSync(args[0], args[1], args[2], args[3])
	case "async":
		return m.opAsync(args[0], args[1], args[2], args[3])
	case "send":
		return "", false, m.opSend(args[0], args[1], args[2], args[3])
	case "check":
		return m.w.checks.check(args[0]), true, nil
	case "peer":
		return m.opPeer(args[0], args[1], args[2:])
	case "peerdone":
		m.opPeerDone(args[0], args[1])
	case "part":
		return "", false, m.w.parts.run(m.vm, args[0])
	case "console":
		m.print(args[0], args[1])
	}
	return "", false, nil
}

// arity is how many arguments each operation has.
var arity = map[string]int{
	"done": 2, "phase": 2, "sync": 4, "async": 4, "send": 4, "check": 1, "peer": 2, "peerdone": 2, "console": 2, "part": 1,
}

// callOf is the open call of this mount with the id, else the call of the entry
// at hand, which is who most likely asks.
func (m *mount) callOf(id string) *call {
	if n, err := strconv.ParseUint(id, 10, 64); err == nil && n != 0 {
		m.w.mu.Lock()
		c := m.w.calls[n]
		m.w.mu.Unlock()
		if c != nil && c.m == m {
			return c
		}
	}
	if c := m.top.call; c != nil && m.w.open(c) {
		return c
	}
	return nil
}

// request is the frame of something that the VM asks.
func (m *mount) request(kind wire.Kind, callID, run, verb, payload string) (wire.Frame, *call, error) {
	n, err := strconv.ParseUint(run, 10, 32)
	if err != nil {
		return wire.Frame{}, nil, fmt.Errorf("__host: %q is no run", run)
	}
	if len(payload) > maxAsk {
		return wire.Frame{}, nil, fmt.Errorf("%s: the arguments take %d bytes as JSON, the limit is %d", verb, len(payload), maxAsk)
	}
	f := wire.Frame{Kind: kind, Chain: m.top.chain, Mount: m.id, Run: uint32(n), Name: verb, Payload: []byte(payload)}
	c := m.callOf(callID)
	switch caller := m.top.caller; {
	case c != nil:
		f.Chain, f.Call = c.chain, c.id
	case caller != nil && m.w.open(caller):
		f.Call = caller.id
	}
	return f, c, nil
}

func (m *mount) opDone(callID, text string) error {
	n, err := strconv.ParseUint(callID, 10, 64)
	if err != nil {
		return fmt.Errorf("__host: %q is no call", callID)
	}
	m.w.mu.Lock()
	c := m.calls[n]
	m.w.mu.Unlock()
	if c != nil { // else it has been answered: interrupted, or the mount's own doing
		m.done = append(m.done, answer{c, text})
	}
	return nil
}

// opPhase begins a new entry of the same call: a limit of its own, a name.
func (m *mount) opPhase(callID, name string) {
	c := m.callOf(callID)
	if c == nil || c.phases >= maxPhases {
		return
	}
	c.phases++
	c.phase = name
	m.w.mu.Lock()
	m.top.name = name
	nested := m.top.outer != nil
	m.w.mu.Unlock()
	if !nested {
		m.clock.rearm(m.limit)
	}
}

// opSync asks the host and waits; the VM's clock stands still.
func (m *mount) opSync(callID, run, verb, payload string) (string, bool, error) {
	w := m.w
	f, _, err := m.request(wire.HostSync, callID, run, verb, payload)
	if err != nil {
		return "", false, err
	}
	f.ID = w.nextID()
	r := &reply{ready: make(chan struct{})}
	w.mu.Lock()
	w.replies[f.ID] = r
	w.mu.Unlock()
	m.clock.pause()
	defer m.clock.resume()
	if err := w.trySend(f); err != nil {
		w.dropReply(f.ID)
		return "", false, fmt.Errorf("%s: %w", verb, err)
	}
	if fault := w.awaitReply(m.thread(), r.ready); fault != nil {
		w.dropReply(f.ID)
		return string(failed(fault)), true, nil
	}
	return r.text, true, nil
}

// thread is the one that owns the VM, for use on that thread.
func (m *mount) thread() *thread { return m.owner }

func (w *worker) dropReply(id uint64) {
	w.mu.Lock()
	delete(w.replies, id)
	w.mu.Unlock()
}

// frameReply ends a wait.
func (w *worker) frameReply(f wire.Frame) {
	w.mu.Lock()
	r := w.replies[f.ID]
	delete(w.replies, f.ID)
	w.mu.Unlock()
	if r != nil {
		r.text = string(f.Payload)
		close(r.ready)
	}
}

// opAsync asks the host; a settle follows.
func (m *mount) opAsync(callID, run, verb, payload string) (string, bool, error) {
	w := m.w
	f, c, err := m.request(wire.HostAsync, callID, run, verb, payload)
	if err != nil {
		return "", false, err
	}
	a := &async{m: m, call: c, chain: f.Chain, run: f.Run}
	f.ID = w.nextID()
	w.mu.Lock()
	if n := len(m.asyncs); n >= maxAsyncs {
		w.mu.Unlock()
		return "", false, fmt.Errorf("%s: %d requests of this mount are unanswered, the limit is %d; await some of them first", verb, n, maxAsyncs)
	}
	m.asyncs[f.ID], w.asyncs[f.ID] = a, a
	w.mu.Unlock()
	if err := w.trySend(f); err != nil {
		w.takeAsync(f.ID)
		return "", false, fmt.Errorf("%s: %w", verb, err)
	}
	return strconv.FormatUint(f.ID, 10), true, nil
}

func (w *worker) takeAsync(id uint64) *async {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.asyncs[id]
	if a != nil {
		delete(w.asyncs, id)
		delete(a.m.asyncs, id)
	}
	return a
}

// frameSettle queues the settling of a promise, an entry of its own.
func (w *worker) frameSettle(f wire.Frame) {
	if a := w.takeAsync(f.ID); a != nil {
		w.settle(a, strconv.FormatUint(f.ID, 10), string(f.Payload))
	}
}

func (w *worker) settle(a *async, id, text string) {
	e := &entry{m: a.m, chain: a.chain, run: a.run, name: "continuation"}
	if a.call != nil && w.open(a.call) {
		e.call = a.call
	}
	e.dispatch = func() (string, bool, error) { return a.m.vm.Call("settle", id, text) }
	w.enqueue(e, false)
}

// opSend tells the host something. Progress is dropped when it comes too fast;
// everything else matters.
func (m *mount) opSend(callID, run, verb, payload string) error {
	if verb == "progress" {
		if ok, _ := m.progress.take(time.Now()); !ok {
			return nil
		}
	}
	f, _, err := m.request(wire.Send, callID, run, verb, payload)
	if err != nil {
		return err
	}
	if err := m.w.trySend(f); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// frameOneWay queues an entry that nobody waits for.
func (w *worker) frameOneWay(f wire.Frame, name string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.mounts[f.Mount]
	if m == nil {
		return
	}
	w.enqueueLocked(&entry{m: m, chain: f.Chain, run: f.Run, name: name, dispatch: func() (string, bool, error) {
		return m.vm.Call(args...)
	}}, false)
}

// checks remembers definitions whose schemas are right, as many as keptChecks: while
// a plugin is written it is mounted again and again, with the same ones.
type checks struct {
	mu   sync.Mutex
	kept map[string]bool
}

const (
	keptChecks = 64
	keptCheck  = 8 << 10 // bytes of a text
)

func (c *checks) check(text string) string {
	c.mu.Lock()
	right := c.kept[text]
	c.mu.Unlock()
	if right {
		return "="
	}
	answer := check(text)
	if answer == "=" && len(text) <= keptCheck {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.kept == nil || len(c.kept) >= keptChecks {
			c.kept = map[string]bool{}
		}
		c.kept[strings.Clone(text)] = true
	}
	return answer
}

// check validates the two schemas of a tool.
func check(text string) string {
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		return thrownText("TypeError", "harness.defineTool: "+err.Error())
	}
	name, _ := v.Get("name")
	parameters, _ := v.Get("parameters")
	output, _ := v.Get("output")
	var wrong []string
	if _, err := schema.Parameters(parameters); err != nil {
		wrong = append(wrong, err.Error())
	}
	if _, err := schema.Output(output); err != nil {
		wrong = append(wrong, err.Error())
	}
	if len(wrong) > 0 {
		return thrownText("TypeError", fmt.Sprintf("harness.defineTool %q %s", name.Str(), strings.Join(wrong, "; ")))
	}
	return "="
}

// thrownText is the value text of an error that the prelude throws.
func thrownText(name, message string) string {
	return string(failed(&wire.Fault{Name: name, Message: message}))
}

// bucket lets limits.ConsoleBurst lines through at once and
// limits.ConsoleRate a second after that. The zero bucket is full.
type bucket struct {
	taken   float64
	last    time.Time
	dropped int
	told    time.Time // when the last notice about dropped lines was given
}

// take reports whether one more may pass at now, and how many did not since the
// last notice, when one is due: at most one a second.
func (b *bucket) take(now time.Time) (ok bool, dropped int) {
	if !b.last.IsZero() {
		b.taken = max(0, b.taken-now.Sub(b.last).Seconds()*limits.ConsoleRate)
	}
	b.last = now
	if b.taken > limits.ConsoleBurst-1 {
		b.dropped++
		return false, 0
	}
	b.taken++
	if b.dropped > 0 && now.Sub(b.told) >= time.Second {
		dropped, b.dropped, b.told = b.dropped, 0, now
	}
	return true, dropped
}

// maxLevel bounds a level's name: the prelude's are short.
const maxLevel = 16

// print sends a line, unless the mount prints too much.
func (m *mount) print(level, text string) {
	ok, dropped := m.lines.take(time.Now())
	if dropped > 0 {
		m.w.send(wire.Frame{Kind: wire.Console, Mount: m.id, Run: m.top.run, Name: "warn",
			Payload: fmt.Appendf(nil, "%d lines dropped: %s prints more than %d lines a second", dropped, m.label, limits.ConsoleRate)})
	}
	if ok {
		text = m.positions.Printed(cut(text, limits.ConsoleLineBytes))
		m.w.send(wire.Frame{Kind: wire.Console, Mount: m.id, Run: m.top.run, Name: cut(level, maxLevel), Payload: []byte(text)})
	}
}

// cut returns at most n bytes of s, in whole characters, and marks the cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
