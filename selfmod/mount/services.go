package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/tool"
)

// Names of services that the façade serves itself.
var (
	timerName = timer.Service.Name()
	toolsName = tool.Service.Name()
)

// facades is what these are bound to, in every run.
var facades = map[string]json.RawMessage{
	toolsName: json.RawMessage(`{"kind":"tools"}`), timerName: json.RawMessage(`{"kind":"timer"}`),
}

// live are the services with which a worker may go on from the code to apply.
func (m *Mount) live() string {
	text := []byte{'{'}
	for name, binding := range facades {
		if _, ok := m.set.ctx.Get(name); ok {
			if len(text) > 1 {
				text = append(text, ',')
			}
			text = append(append(append(append(text, '"'), name...), `":`...), binding...)
		}
	}
	return string(append(text, '}'))
}

// missed says whether apply has run ahead for a fiber that did not get to its body:
// what it injects went in between. The fiber will have another machine.
func (m *Mount) missed(vm *sandbox.VM) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stale = !m.ran && vm.Ahead()
	return m.stale
}

// Service is the value of a service that a mount provides, as the runtime
// holds it. Another mount is bound to it; Go code can tell whose it is.
type Service struct {
	Mount   string // "dyn-1", or the path of a plugin file
	File    bool   // it is a plugin file's
	run     *run
	relay   uint32 // of the run: the function by which the host reaches the value; 0: it is plain data
	binding json.RawMessage
	members []Member
}

// Label names the plugin that provides it, for people.
func (s *Service) Label() string {
	if s.File {
		return "plugin file " + plain.Name(s.Mount)
	}
	return "temporary Plugin " + s.Mount
}

// Member is one member of what a mount provides, as it was when it was provided.
type Member struct {
	Name  string // as the plugin says it, cut
	Kind  string // "function" or "value"
	Arity int    // of a function: how many parameters it has
	async bool   // of a function: it says that it is
	// Params are their names where they can be told, those with a default with a
	// question mark behind; else nil.
	Params []string
}

// Members are what the value has, its own and what its class gives it, at most
// [limits.Members] of them; none for a value that is no object.
func (s *Service) Members() []Member { return slices.Clone(s.members) }

// membersOf reads what the prelude says of a value.
func membersOf(rows [][4]any) []Member {
	members := make([]Member, 0, min(len(rows), limits.Members))
	for _, row := range rows[:min(len(rows), limits.Members)] {
		name, _ := row[0].(string)
		arity, _ := row[2].(float64)
		m := Member{Name: plain.Cut(name, 4*limits.Name), Kind: "value"}
		if row[1] == "function" {
			m.Kind, m.Arity = "function", int(min(max(arity, 0), limits.Members))
			text, _ := row[3].(string)
			m.Params = paramNames(text, m.Arity)
			m.async = strings.HasPrefix(text, "async")
		}
		members = append(members, m)
	}
	return members
}

// forms are those of a function's text and of one parameter. Not at the start: every
// process of the program would wait for it.
var forms = sync.OnceValue(func() (f struct{ function, arrow, param *regexp.Regexp }) {
	f.function = regexp.MustCompile(`^(?:async\s+)?(?:function\b\s*)?\*?\s*[\w$]*\s*\(([^()]*)\)`)
	f.arrow = regexp.MustCompile(`^(?:async\s+)?([\w$]+)\s*=>`)
	f.param = regexp.MustCompile(`^((?:\.\.\.)?[A-Za-z_$][\w$]*)(\s*=[^{}\[\]"'` + "`" + `/]*)?$`)
	return f
})

// paramNames reads the names of parameters from how a function begins; nil where
// that is not plain, or not as many as it says.
func paramNames(text string, arity int) []string {
	m := forms().function.FindStringSubmatch(text)
	if m == nil {
		m = forms().arrow.FindStringSubmatch(text)
	}
	if m == nil || strings.TrimSpace(m[1]) == "" {
		return nil
	}
	var names []string
	required := -1
	for part := range strings.SplitSeq(m[1], ",") {
		p := forms().param.FindStringSubmatch(strings.TrimSpace(part))
		if p == nil {
			return nil
		}
		name := p[1]
		optional := p[2] != ""
		if (optional || name[0] == '.') && required < 0 {
			required = len(names)
		}
		if optional {
			name += "?"
		}
		names = append(names, name)
	}
	if required < 0 {
		required = len(names)
	}
	if required != arity {
		return nil
	}
	return names
}

// binding is what a declared service is bound to; see the prelude.
type binding struct {
	Kind    string          `json:"kind"`
	Value   json.RawMessage `json:"value,omitempty"`
	Mount   uint32          `json:"mount,omitempty"`
	Handle  uint32          `json:"handle,omitempty"`
	Members json.RawMessage `json:"members,omitempty"`
}

// provide registers a service under a name that no host service declares.
func (r *run) provide(_ context.Context, payload json.RawMessage) (any, error) {
	var p struct {
		Name    string   `json:"name"`
		Binding binding  `json:"binding"`
		Members [][4]any `json:"members"`
		Relay   uint32   `json:"relay"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read provide: %w", err)
	}
	switch {
	case p.Name == "":
		return nil, errors.New("ctx.provide(name, value): the name must not be empty")
	case !usableName(p.Name):
		return nil, fmt.Errorf("ctx.provide: %q is no usable name: %s", plain.Name(p.Name), nameRule)
	case verbNames[p.Name]:
		return nil, fmt.Errorf("ctx.provide: %q is a member of every ctx; choose another name", p.Name)
	}
	if reserved(p.Name) {
		return nil, fmt.Errorf("ctx.provide: the name %q is reserved for a service of the harness, running or not; choose another name", p.Name)
	}
	switch p.Binding.Kind {
	case "value":
	case "peer":
		p.Binding.Mount = r.vm.Number() // whatever it says: nobody provides for another mount
	default:
		return nil, fmt.Errorf("ctx.provide: unknown kind of value %q", plain.Name(p.Binding.Kind))
	}
	text, err := json.Marshal(p.Binding)
	if err != nil {
		return nil, fmt.Errorf("write binding: %w", err)
	}
	return r.register(kindService, func(uint32, func()) (*cordis.Handle, error) {
		h, err := r.c.Provide(p.Name, &Service{Mount: r.m.ID, File: r.m.code != nil, run: r, relay: p.Relay, binding: text, members: membersOf(p.Members)})
		if v, ok := r.c.Peek(p.Name); ok && errors.Is(err, cordis.ErrDuplicate) {
			if s, ok := v.(*Service); ok {
				err = fmt.Errorf("%w: it is provided by %s", err, s.Label())
			}
		}
		return h, err
	})
}

// usableName says whether a service may be called so: what a report shows of it
// must be all of it.
func usableName(name string) bool {
	return len(name) <= limits.Name && plain.Name(name) == name && !strings.ContainsRune(name, utf8.RuneError)
}

// nameRule is what usableName asks for.
var nameRule = fmt.Sprintf("at most %d bytes, one line, no control characters or Markdown", limits.Name)

// reserved says whether a name is a host service's, whether that is linked in and
// runs or not.
func reserved(name string) bool {
	_, declared := cordis.LookupService(name)
	_, catalogued := catalog.LookupService(name)
	return declared || catalogued
}

// verbNames are the members of every façade: a service of such a name could
// not be reached.
var verbNames = map[string]bool{
	"tools": true, "on": true, "once": true, "provide": true, "effect": true, "get": true,
	"timeout": true, "interval": true, "setTimeout": true, "setInterval": true, "clearTimeout": true,
	"clearInterval": true, "throttle": true, "debounce": true, "then": true,
}

// bindings is what each declared service is bound to now.
func (r *run) bindings() json.RawMessage {
	r.m.mu.Lock()
	deps := r.m.inject
	r.m.mu.Unlock()
	text := []byte{'{'}
	for i, d := range deps {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(lossless.Str(d.Name).AppendTo(text), ':')
		if b := r.bindingOf(d.Name); len(b) > 0 {
			text = append(text, b...)
		} else {
			text = append(text, null...)
		}
	}
	return append(text, '}')
}

var null = json.RawMessage("null")

func (r *run) bindingOf(name string) json.RawMessage {
	v, ok := r.c.Get(name)
	if !ok {
		r.unbind(name)
		return null
	}
	if b := facades[name]; b != nil {
		return b
	}
	if s, ok := v.(*Service); ok {
		if s.relay == 0 || s.run.m.set.cfg.Sandbox == r.m.set.cfg.Sandbox {
			r.unbind(name)
			return s.binding
		}
		return r.bindRelay(name, s)
	}
	d, ok := cordis.LookupService(name)
	if !ok || d.Bind == nil {
		return null
	}
	text, err := r.bind(d, v)
	if err != nil {
		r.c.Logger().Error("a service cannot be used by plugins", "service", name, "error", err)
		return null
	}
	return text
}

// followOptional keeps the optional services of a run bound to what is live.
func (r *run) followOptional() error {
	optional := map[string]bool{}
	r.m.mu.Lock()
	for _, d := range r.m.inject {
		if d.Optional {
			optional[d.Name] = true
		}
	}
	r.m.mu.Unlock()
	if len(optional) == 0 {
		return nil
	}
	_, err := cordis.ServiceChanged.On(r.c, func(_ context.Context, ch cordis.ServiceChange) {
		if optional[ch.Name] {
			r.rebind(ch.Name)
		}
	})
	return err
}

// rebind tells the machine what an optional service is bound to now. One that
// changes while apply runs is told again afterwards: the machine may not have
// known the run yet.
func (r *run) rebind(name string) {
	r.bindMu.Lock()
	defer r.bindMu.Unlock()
	if !r.applied {
		r.rebound = append(r.rebound, name)
	}
	r.vm.Bind(r.id, name, r.bindingOf(name))
}

// catchUp repeats the bindings that changed while apply ran.
func (r *run) catchUp() {
	r.bindMu.Lock()
	defer r.bindMu.Unlock()
	r.applied = true
	for _, name := range r.rebound {
		r.vm.Bind(r.id, name, r.bindingOf(name))
	}
	r.rebound = nil
}

// live says whether anybody provides a service of that name.
func (r *run) live(_ context.Context, payload json.RawMessage) (any, error) {
	var p struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read name: %w", err)
	}
	_, ok := r.c.Get(p.Name)
	return ok, nil
}

// injects says whether the plugin declares a service.
func (r *run) injects(name string) bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	for _, d := range r.m.inject {
		if d.Name == name {
			return true
		}
	}
	return false
}
