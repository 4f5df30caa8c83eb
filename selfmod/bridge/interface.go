package bridge

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/service"
)

// Interface is what can be called of a service, or of an object that a method
// returned.
type Interface struct {
	// Name is the service's key, or the name of the object's type.
	Name string
	// Members are what it has, sorted by name.
	Members []*Member

	label   string // in messages: "ctx.fs", "Process"
	service bool
	t       reflect.Type // in Go
}

// Member is one method or property.
type Member struct {
	Name      string // in JavaScript
	Kind      catalog.Kind
	Signature string
	// Objects are the interfaces of objects that calling it may give; nil: none.
	Objects []*Interface

	in     *Interface
	method int  // of the Go interface
	ctx    bool // its first parameter is a context
	params []param
	result reflect.Type // nil: none
	fails  bool         // its last result is an error
}

// param is one parameter, without the context.
type param struct {
	name, ts string
	t        reflect.Type
	optional bool
}

// Member finds a member by its name.
func (i *Interface) Member(name string) (*Member, bool) {
	at, ok := slices.BinarySearchFunc(i.Members, name, func(m *Member, name string) int { return strings.Compare(m.Name, name) })
	if !ok {
		return nil, false
	}
	return i.Members[at], true
}

// names are those of the members.
func (i *Interface) names() []string {
	names := make([]string, len(i.Members))
	for at, m := range i.Members {
		names[at] = m.Name
	}
	return names
}

// Types are the interfaces of all objects that can be reached from i, without i
// itself unless it is one of them, sorted by name.
func (i *Interface) Types() []*Interface {
	seen := map[string]*Interface{}
	var walk func(*Interface)
	walk = func(from *Interface) {
		for _, m := range from.Members {
			for _, o := range m.Objects {
				if seen[o.Name] == nil {
					seen[o.Name] = o
					walk(o)
				}
			}
		}
	}
	walk(i)
	out := make([]*Interface, 0, len(seen))
	for _, o := range seen {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *Interface) int { return strings.Compare(a.Name, b.Name) })
	return out
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	bytesType   = reflect.TypeFor[[]byte]()
	disposeType = reflect.TypeFor[service.Dispose]()
	signalType  = reflect.TypeFor[service.Signal]()
)

var (
	made   = map[string]*Interface{} // by key, and by type of objects
	madeMu sync.Mutex
)

// Of gives the interface of a declared service; what it is made of does not
// change. A service that plugins may not inject, or whose interface is not
// written as package service says, is an error.
func Of(d cordis.ServiceDecl) (*Interface, error) {
	if d.Plugin == nil {
		return nil, fmt.Errorf("service %q has no interface for plugins", d.Name)
	}
	madeMu.Lock()
	defer madeMu.Unlock()
	key := "service " + d.Name
	if i := made[key]; i != nil {
		return i, nil
	}
	i := &Interface{Name: d.Name, label: "ctx." + d.Name, service: true}
	described, known := catalog.LookupService(d.Name)
	var methods []catalog.Method
	if known {
		methods = described.Methods
	}
	fresh := map[string]*Interface{}
	if err := i.fill(d.Plugin, methods, known, fresh); err != nil {
		return nil, fmt.Errorf("service %q: %w", d.Name, err)
	}
	made[key] = i
	for key, object := range fresh {
		made[key] = object
	}
	return i, nil
}

// objectOf gives the interface of objects of type t; fresh has those that are
// being made. The catalog has only the types of services that it has. madeMu is
// held.
func objectOf(t reflect.Type, known bool, fresh map[string]*Interface) (*Interface, error) {
	key := fmt.Sprintf("%s.%s %v", t.PkgPath(), t.Name(), known)
	if i := made[key]; i != nil {
		return i, nil
	}
	if i := fresh[key]; i != nil {
		return i, nil
	}
	if t.Name() == "" {
		return nil, fmt.Errorf("a result of the type %v, which has no name", t)
	}
	i := &Interface{Name: t.Name(), label: t.Name()}
	fresh[key] = i
	var methods []catalog.Method
	if described, ok := catalog.LookupType(i.Name); known && ok {
		methods = described.Methods
	}
	return i, i.fill(t, methods, known, fresh)
}

// fill makes the members of i from the methods of t, those that are described if
// anything is.
func (i *Interface) fill(t reflect.Type, methods []catalog.Method, known bool, fresh map[string]*Interface) error {
	i.t = t
	for n := range t.NumMethod() {
		method := t.Method(n)
		if !method.IsExported() {
			continue
		}
		var described *catalog.Method
		if known {
			at := slices.IndexFunc(methods, func(m catalog.Method) bool { return m.Go == method.Name })
			if at < 0 {
				continue
			}
			described = &methods[at]
		}
		m, err := i.member(method, described, known, fresh)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t.Name(), method.Name, err)
		}
		i.Members = append(i.Members, m)
	}
	slices.SortFunc(i.Members, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (i *Interface) member(method reflect.Method, described *catalog.Method, known bool, fresh map[string]*Interface) (*Member, error) {
	t := method.Type
	m := &Member{Name: lower(method.Name), in: i, method: method.Index}
	for n := range t.NumIn() {
		in := t.In(n)
		if n == 0 && in == contextType {
			m.ctx = true
			continue
		}
		p := param{name: fmt.Sprintf("arg%d", len(m.params)+1), t: in, ts: tsName(in), optional: in.Kind() == reflect.Pointer}
		if described != nil && len(m.params) < len(described.Params) {
			d := described.Params[len(m.params)]
			p.name, p.ts = d.Name, d.Type
		}
		m.params = append(m.params, p)
	}
	if t.IsVariadic() {
		return nil, fmt.Errorf("it is variadic, which has no meaning here")
	}
	if err := m.results(t, known, fresh); err != nil {
		return nil, err
	}
	m.Kind = m.kind()
	m.Signature = m.signature()
	if described != nil {
		m.Name, m.Signature = described.Name, described.Signature
		if described.Kind != m.Kind {
			return nil, fmt.Errorf("the catalog says that it is %s, and it is %s", described.Kind, m.Kind)
		}
	}
	return m, nil
}

// results reads what a method returns: nothing, a value, an error, or both.
func (m *Member) results(t reflect.Type, known bool, fresh map[string]*Interface) error {
	n := t.NumOut()
	if n > 0 && t.Out(n-1) == errorType {
		m.fails = true
		n--
	}
	if n > 1 {
		return fmt.Errorf("it returns %d values; a result and an error are what can be returned", n)
	}
	if n == 1 {
		m.result = t.Out(0)
		if object := objectIn(m.result); object != nil {
			i, err := objectOf(object, known, fresh)
			if err != nil {
				return err
			}
			m.Objects = append(m.Objects, i)
		}
	}
	return nil
}

// objectIn is the interface type of the object that a result of type t gives: it
// is t, or that of an iterator's or a promise's values.
func objectIn(t reflect.Type) reflect.Type {
	switch {
	case isIterator(t):
		t = t.In(0).In(0)
	case isPromise(t):
		t = t.Out(0)
	}
	if t.Kind() == reflect.Interface && t.NumMethod() > 0 && t != errorType {
		return t
	}
	return nil
}

// isIterator tells whether t is an iter.Seq2[T, error].
func isIterator(t reflect.Type) bool {
	return t.PkgPath() == "iter" && strings.HasPrefix(t.Name(), "Seq2[") && t.In(0).In(1) == errorType
}

// isPromise tells whether t is a service.Promise.
func isPromise(t reflect.Type) bool {
	return t.Kind() == reflect.Func && t.PkgPath() == disposeType.PkgPath() && strings.HasPrefix(t.Name(), "Promise[")
}

func (m *Member) kind() catalog.Kind {
	switch {
	case m.result != nil && isIterator(m.result):
		return catalog.KindIterator
	case m.ctx:
		return catalog.KindAsync
	case m.in.service || len(m.params) > 0 || m.fails || m.result == nil || m.result == disposeType:
		return catalog.KindSync
	case isPromise(m.result):
		return catalog.KindPromise
	}
	return catalog.KindProperty
}

// signature is for what the catalog has not.
func (m *Member) signature() string {
	result := "void"
	if m.result != nil {
		result = tsName(m.result)
	}
	switch m.Kind {
	case catalog.KindProperty:
		return "readonly " + m.Name + ": " + result
	case catalog.KindPromise:
		return "readonly " + m.Name + ": " + result
	case catalog.KindAsync:
		result = "Promise<" + result + ">"
	}
	params := make([]string, len(m.params))
	for n, p := range m.params {
		params[n] = p.name + ": " + p.ts
		if p.optional {
			params[n] = p.name + "?: " + p.ts
		}
	}
	return m.Name + "(" + strings.Join(params, ", ") + "): " + result
}

// lower is a Go name in JavaScript: what is in capitals at its beginning becomes
// small, up to the last capital before a small letter.
func lower(name string) string {
	runes := []rune(name)
	for n := range runes {
		if n > 0 && n+1 < len(runes) && unicode.IsLower(runes[n+1]) || !unicode.IsUpper(runes[n]) {
			break
		}
		runes[n] = unicode.ToLower(runes[n])
	}
	return string(runes)
}
