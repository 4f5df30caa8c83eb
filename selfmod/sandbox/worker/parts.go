package worker

import (
	"fmt"
	"sync"

	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
)

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
