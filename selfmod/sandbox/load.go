package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// Spec is what Load loads.
type Spec struct {
	ID     string // "dyn-1"; names the mount in every message
	File   string // the name that positions carry
	Source string

	// Entry makes the plugin an ES module instead of Source: the one of Files, texts by
	// their paths below the plugin's folder, that exports it: a .js or a .ts file, which
	// may import the others and .json files by relative paths, and nothing else. Together
	// they take at most limits.Source bytes. File is then the path of the entry, or of its
	// folder; positions name each file beside it.
	Entry string
	Files map[string]string

	// Run and Live let the worker go on with Apply as that run, without being told
	// to: if all that the plugin injects is in Live, a JSON object of what services
	// are bound to. VM.Apply of that run then takes over what runs already. What it
	// asks for, and how it ends, waits for that. Live is empty: it does not.
	Run  uint32
	Live string
}

// Load runs the source in a new VM as the body of an async function, or the entry as a
// module, and tells what plugin it returned or exports. On an error nothing is left of it, and the host is
// not told of the death.
func (s *Sandbox) Load(ctx context.Context, spec Spec, host Host) (*VM, wire.Loaded, error) {
	var loaded wire.Loaded
	p, err := s.process(ctx)
	if e := (*Error)(nil); errors.As(err, &e) {
		named := *e // others may wait for the same start
		named.Mount, named.Entry = spec.ID, "the code"
		return nil, loaded, &named
	}
	if err != nil {
		return nil, loaded, err
	}
	vm := &VM{s: s, p: p, host: host}
	vm.who.Store(&spec.ID)
	s.mu.Lock()
	s.nextVM++
	vm.num = s.nextVM
	s.mu.Unlock()
	p.mu.Lock()
	p.vms[vm.num] = vm
	p.mu.Unlock()
	o := vm.load(ctx, spec)
	if o.err == nil {
		if loaded, err = wire.ReadLoaded(o.value); err != nil {
			o.err = &Error{Code: CodeProtocol, Mount: spec.ID, Cause: "the worker's answer is unreadable"}
		}
	}
	if o.err == nil {
		o.err = vm.ready()
	}
	if o.err != nil {
		vm.Close(context.WithoutCancel(ctx))
		return nil, loaded, o.err
	}
	return vm, loaded, nil
}

// load sends the source and waits for what it returns.
func (vm *VM) load(ctx context.Context, spec Spec) outcome {
	cfg := vm.s.cfg
	c, err := vm.p.begin(ctx, vm, wire.Load, "the code", cfg.CallTimeout)
	if err != nil {
		return outcome{err: err}
	}
	l := wire.LoadRequest{ID: spec.ID, File: spec.File, Source: spec.Source, Entry: spec.Entry, Files: spec.Files, MemoryMB: cfg.MemoryMB, VMTimeout: cfg.VMTimeout}
	if spec.Live != "" {
		l.Run, l.Live = spec.Run, spec.Live
		l.Apply = vm.p.allow(c, spec.Run)
	}
	payload := wire.AppendLoad(make([]byte, 0, len(spec.Source)+256), l)
	return vm.p.roundTrip(ctx, c, wire.Frame{Payload: payload}, cfg.CallTimeout)
}

// ready makes a VM that has been loaded its host's, unless it has died meanwhile.
func (vm *VM) ready() *Error {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	vm.loaded = true
	return vm.death
}

// Apply runs the plugin's apply as the given run, with what each declared
// service is bound to, a JSON object, and the plugin's configuration, JSON that the
// caller has checked; empty for none, which is an empty object to the plugin.
// One that runs already is taken over.
func (vm *VM) Apply(ctx context.Context, run uint32, bindings, config json.RawMessage) error {
	if len(config) > 0 { // no service has an empty name
		var all map[string]json.RawMessage
		if err := json.Unmarshal(bindings, &all); err != nil {
			return fmt.Errorf("read bindings: %w", err)
		}
		if all == nil { // they were null
			all = map[string]json.RawMessage{}
		}
		all[""] = config
		text, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("write bindings: %w", err)
		}
		bindings = text
	}
	var o outcome
	limit := vm.s.cfg.CallTimeout
	if c := vm.p.takeOver(ctx, vm, run); c != nil {
		o = vm.p.await(ctx, c, limit)
	} else {
		o = vm.enter(ctx, wire.Apply, wire.Frame{Run: run, Payload: bindings}, "apply", limit)
	}
	if o.err != nil {
		return o.err
	}
	return nil
}
