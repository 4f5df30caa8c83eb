package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// promise is one that a mount gave to another, until it settles.
type promise struct {
	to *async
	id string // as the one that waits knows it
}

// opPeer enters another VM, or this one again, with a request and its arguments, and
// returns what it answers. The caller's clock stands still meanwhile.
func (m *mount) opPeer(mountID, request string, args []string) (string, bool, error) {
	w := m.w
	n, err := strconv.ParseUint(mountID, 10, 32)
	if err != nil {
		return "", false, fmt.Errorf("__host: %q is no mount", mountID)
	}
	run, err := runOf(request)
	if err != nil {
		return "", false, err
	}
	w.mu.Lock()
	to := w.mounts[uint32(n)]
	w.mu.Unlock()
	if to == nil {
		return thrownPeer(noMount(uint32(n))), true, nil
	}
	m.clock.pause()
	defer m.clock.resume()
	text, fault := m.callPeer(to, run, request, args)
	if fault != nil {
		return thrownPeer(fault), true, nil
	}
	return text, true, nil
}

func thrownPeer(f *wire.Fault) string { return string(failed(f)) }

// runOf reads the run out of a request, which the prelude writes first.
func runOf(request string) (uint32, error) {
	const head = `{"run":`
	if digits, ok := strings.CutPrefix(request, head); ok {
		if end := strings.IndexAny(digits, ",}"); end > 0 {
			if n, err := strconv.ParseUint(digits[:end], 10, 32); err == nil {
				return uint32(n), nil
			}
		}
	}
	var r struct {
		Run uint32 `json:"run"`
	}
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return 0, fmt.Errorf("__host: peer request: %w", err)
	}
	return r.Run, nil
}

// callPeer runs the request in the other VM.
func (m *mount) callPeer(to *mount, run uint32, request string, args []string) (string, *wire.Fault) {
	w, t, top := m.w, m.thread(), m.top
	e := &entry{m: to, caller: top.origin(), chain: top.chain, run: run, name: "service member"}
	a := &async{m: m, call: top.call, chain: top.chain, run: run}
	e.dispatch = func() (string, bool, error) {
		to.peers[m] = struct{}{}
		if len(to.promises) >= maxPromises {
			return "", false, &wire.Fault{Name: "RangeError", Message: fmt.Sprintf(
				"%s owes other mounts %d promises, the limit is %d", to.label, len(to.promises), maxPromises)}
		}
		caller := strconv.FormatUint(uint64(m.id), 10) + ":" + runText(run)
		if len(args) == 0 {
			return to.vm.Call("peer", caller, request)
		}
		return to.vm.Call("peer", caller, request, args[0])
	}
	var answered string
	e.answered = func(text string) {
		if len(text) > 1 && text[0] == '~' {
			id := strconv.FormatUint(w.nextID(), 10)
			to.promises[text[1:]] = promise{to: a, id: id}
			text = "~" + id
		}
		answered = text
	}
	m.peers[to] = struct{}{}
	var o outcome
	how, fault := w.acquire(t, to, func(other *thread) { o = w.enter(other, e) })
	if fault != nil {
		return "", fault
	}
	switch how {
	case had:
		o = w.enter(t, e)
	case took:
		if fault = notLoaded(to); fault == nil {
			o = w.enter(t, e)
		}
		w.release(to)
		if fault != nil {
			return "", fault
		}
	}
	if o.fault != nil {
		return "", o.fault
	}
	return answered, nil
}

// opPeerDone settles a promise that this VM gave to another.
func (m *mount) opPeerDone(id, text string) {
	p, ok := m.promises[id]
	if !ok {
		return
	}
	delete(m.promises, id)
	m.w.settle(p.to, p.id, text)
}

// frameRetire ends a run of a mount, and what others keep for it.
func (w *worker) frameRetire(f wire.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.mounts[f.Mount]
	if m == nil {
		return
	}
	w.enqueueLocked(&entry{m: m, chain: f.Chain, run: f.Run, name: "retire", dispatch: func() (string, bool, error) {
		delete(m.runs, f.Run)
		w.breakPromises(m, &wire.Fault{Name: "Error", Code: wire.CodeNoMount, Message: m.label + " was restarted"})
		w.dropPeers(m, f.Run)
		return m.vm.Call("retire", runText(f.Run))
	}}, false)
}

// dropPeers lets every mount that the run has had to do with forget it.
func (w *worker) dropPeers(m *mount, run uint32) {
	caller := strconv.FormatUint(uint64(m.id), 10) + ":" + runText(run)
	for to := range m.peers {
		if to == m {
			continue
		}
		w.enqueue(&entry{m: to, name: "drop", dispatch: func() (string, bool, error) {
			return to.vm.Call("drop", caller)
		}}, false)
	}
}

// leavePeers tells every mount that had to do with a closed one: promises that it
// owed fail, what was kept for it goes.
func (w *worker) leavePeers(m *mount) {
	w.breakPromises(m, m.dead)
	for run := range m.runs {
		w.dropPeers(m, run)
	}
	for to := range m.peers {
		if to != m {
			w.enqueue(&entry{m: to, name: "drop", dispatch: func() (string, bool, error) {
				delete(to.peers, m)
				return "", false, nil
			}}, false)
		}
	}
	clear(m.peers)
}

// breakPromises fails what a mount owes to others.
func (w *worker) breakPromises(m *mount, why *wire.Fault) {
	ids := make([]string, 0, len(m.promises))
	for id := range m.promises {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		p := m.promises[id]
		w.settle(p.to, p.id, thrownPeer(why))
	}
	clear(m.promises)
}
