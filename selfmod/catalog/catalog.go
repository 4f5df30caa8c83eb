// Package catalog tells what mounted plugins can call and hear, as the model
// reads it: the services with their methods, the events, the types that their
// signatures mention, and the verbs of ctx. It is generated from the Go source,
// so it cannot drift; what is live is for its readers to find out.
//
// # What is generated
//
// The generator (internal/gen/catalog, run by go generate ./...) finds every
// service that is declared with cordis.PluginInterface and every event that is
// declared with cordis.ForPlugins. Package service says how Go is written as
// TypeScript. A method, a field or an event without a comment, or one that has
// no meaning in JavaScript, ends the generator with its place in the source; a
// test fails while anything generated is stale.
//
// # Order and sharing
//
// Services are sorted by key, events and types by name, members of ctx as they
// are taught. Methods and fields keep the order of the source. Everything is
// read-only and may be read from everywhere.
package catalog

//go:generate go run ../../internal/gen/catalog

import (
	"cmp"
	"slices"
)

// Kind is how a method is used from JavaScript.
type Kind string

// The kinds of methods. Properties and promises are found on objects that
// methods return, never on a service.
const (
	// KindSync returns its result.
	KindSync Kind = "sync"
	// KindAsync returns a promise of it: the Go method takes a context.
	KindAsync Kind = "async"
	// KindIterator returns an AsyncIterable.
	KindIterator Kind = "iterator"
	// KindProperty is read without a call, anew each time.
	KindProperty Kind = "property"
	// KindPromise is a property that is a promise.
	KindPromise Kind = "promise"
)

// Method is one member of a service or of an object that a service returned.
type Method struct {
	Name string // in JavaScript
	Go   string // in Go; empty where the façade implements it
	Kind Kind
	// Params are the arguments in their order, without the context.
	Params []Param
	// Result is its type when it has settled, "void" for none; of an iterator
	// the type of one element.
	Result string
	// Signature is the declaration: name(a: A, b?: B): Promise<R>, and
	// readonly name: R of a property. Overloads are separated by newlines.
	Signature string
	Summary   string // the first sentence of Doc
	Doc       string
}

// Param is one parameter of a method.
type Param struct {
	Name string
	Type string // in TypeScript
	// Optional parameters may be left out or undefined.
	Optional bool
	Doc      string // empty where the method's comment tells it
}

// Service is one service that plugins may inject.
type Service struct {
	Key     string
	Summary string // the first sentence of Doc
	Doc     string
	// Facade services are implemented by the façade of ctx, not by the bridge.
	// The methods of timer are members of ctx itself.
	Facade  bool
	Methods []Method
}

// Method finds a method by its name in JavaScript.
func (s *Service) Method(name string) (*Method, bool) { return find(s.Methods, name) }

// Event is one event that plugins may listen to.
type Event struct {
	Name string
	Mode string // as cordis.Mode says it
	// Signature is the listener: 'tools/result'(exec: ToolCall, result: ToolResult): void
	Signature string
	Summary   string // the first sentence of Doc
	Doc       string
}

// Type is one type that signatures mention.
type Type struct {
	Name string
	// Declaration is TypeScript with the docs of the type and its fields.
	Declaration string
	// Short is the same in one line, without docs.
	Short string
	Doc   string
	// Methods are the members of an object that stays in the host, as a running
	// process does; nil for data.
	Methods []Method
}

// Method finds a member by its name in JavaScript.
func (t *Type) Method(name string) (*Method, bool) { return find(t.Methods, name) }

// Member is a group of verbs that every ctx has.
type Member struct {
	Group   string // ctx.on(event, listener)
	Summary string
}

// LookupService finds a service by its key.
func LookupService(key string) (*Service, bool) {
	return search(Services, key, func(s Service) string { return s.Key })
}

// LookupEvent finds an event by its name.
func LookupEvent(name string) (*Event, bool) {
	return search(Events, name, func(e Event) string { return e.Name })
}

// LookupType finds a type by its name.
func LookupType(name string) (*Type, bool) {
	return search(Types, name, func(t Type) string { return t.Name })
}

func search[T any](in []T, name string, nameOf func(T) string) (*T, bool) {
	i, ok := slices.BinarySearchFunc(in, name, func(t T, name string) int { return cmp.Compare(nameOf(t), name) })
	if !ok {
		return nil, false
	}
	return &in[i], true
}

func find(in []Method, name string) (*Method, bool) {
	i := slices.IndexFunc(in, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return nil, false
	}
	return &in[i], true
}

// Closure gives the types that texts mention as whole words, the types that
// these mention, and so on, sorted by name. Docs do not count.
func Closure(texts ...string) []Type {
	seen := map[string]*Type{}
	for todo := slices.Clone(texts); len(todo) > 0; {
		text := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for name := range words(text) {
			t, ok := LookupType(name)
			if !ok || seen[name] != nil {
				continue
			}
			seen[name] = t
			todo = append(todo, t.Short)
			for _, m := range t.Methods {
				todo = append(todo, m.Signature)
			}
		}
	}
	out := make([]Type, 0, len(seen))
	for _, t := range seen {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Type) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// words yields the words of a text that begin with a capital, as types do.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(text); {
			start := i
			for i < len(text) && wordByte(text[i]) {
				i++
			}
			if i == start {
				i++
				continue
			}
			if c := text[start]; c >= 'A' && c <= 'Z' && !yield(text[start:i]) {
				return
			}
		}
	}
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
