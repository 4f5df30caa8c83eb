package schema

import (
	"fmt"
	"math"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// MaxChecks is the most checks (a value against a node) of one validation: about
// a second. It is more than any value within limits.Arguments takes, but for
// schemas that try a great many oneOf branches on each of a great many values.
const MaxChecks = 20_000_000

// arguments is what the root is called where its path is empty.
const arguments = "arguments"

// Validate returns every violation of v, in walk order; none when v is valid. The
// first limits.Violations are named, then one last says "and N more". root is
// "" for arguments and "value" for outputs.
func (s *Schema) Validate(root string, v lossless.Value) []Violation {
	return newWork().validate(s.root, root, v)
}

// work is one validation. It walks schema and value together with a stack of its
// own, whose containers also tell the path. Inside branches of oneOf nothing is
// reported: the first violation there ends the branch.
type work struct {
	root   string
	stack  []frame
	found  violations
	unions int  // frames of oneOf on the stack
	failed bool // a violation inside a branch, not yet acted on
	checks int
}

// frame is a container, or a oneOf, whose children are being checked.
type frame struct {
	node    *node
	v       lossless.Value
	next    int // child or branch
	trying  bool
	matched int // branches
}

func newWork() *work { return &work{checks: MaxChecks} }

func (w *work) validate(n *node, root string, v lossless.Value) []Violation {
	w.root, w.found = root, violations{}
	w.stack, w.unions, w.failed = w.stack[:0], 0, false
	w.enter(n, v)
	for len(w.stack) > 0 && w.checks > 0 {
		if w.failed {
			w.endBranch()
		}
		w.step()
	}
	if w.checks <= 0 {
		w.stack, w.unions = w.stack[:0], 0
		w.report(" takes more than %d checks: try fewer oneOf branches on fewer values", MaxChecks)
	}
	return w.found.all()
}

// endBranch drops the frames of a branch that failed.
func (w *work) endBranch() {
	for w.stack[len(w.stack)-1].node.oneOf == nil {
		w.stack = w.stack[:len(w.stack)-1]
	}
	w.stack[len(w.stack)-1].trying = false
	w.failed = false
}

// step goes on with the innermost frame.
func (w *work) step() {
	top := &w.stack[len(w.stack)-1]
	n := top.node
	if n.oneOf != nil {
		if top.trying {
			top.matched++
		}
		if top.next < len(n.oneOf) {
			top.next++
			top.trying = true
			w.enter(n.oneOf[top.next-1], top.v)
			return
		}
		matched := top.matched
		v := top.v
		w.stack = w.stack[:len(w.stack)-1]
		w.unions--
		if matched != 1 {
			w.report(" must match exactly one oneOf branch (matched %d): %s (got %s)", matched, describe(n.oneOf), lazy{v})
		}
		return
	}
	if top.next >= top.v.Len() {
		w.stack = w.stack[:len(w.stack)-1]
		return
	}
	i := top.next
	top.next++
	child := top.v.At(i)
	if n.items != nil {
		w.enter(n.items, child)
		return
	}
	if p := n.find(top.v.Key(i)); p != nil {
		w.enter(p.node, child)
		return
	}
	w.checks--
	if n.closed() {
		w.unknown(n, top.v, top.v.Key(i))
	}
}

// enter checks a value against a node, and opens a frame where there are children to check.
func (w *work) enter(n *node, v lossless.Value) {
	w.checks--
	if n.oneOf != nil {
		w.unions++
		w.stack = append(w.stack, frame{node: n, v: v})
		return
	}
	switch n.typ {
	case "":
		return
	case "object":
		if v.Kind() != lossless.Object {
			w.report(" must be an object (got %s)", lazy{v})
			return
		}
		w.required(n, v)
		if v.Len() > 0 && (len(n.properties) > 0 || n.closed()) {
			w.stack = append(w.stack, frame{node: n, v: v})
		}
	case "array":
		if v.Kind() != lossless.Array {
			w.report(" must be an array (got %s)", lazy{v})
			return
		}
		if v.Len() > 0 && n.items != nil && !n.items.any() {
			w.stack = append(w.stack, frame{node: n, v: v})
		}
	default:
		w.scalar(n, v)
	}
}

var articles = map[string]string{
	"string": "a string", "number": "a number", "integer": "an integer", "boolean": "a boolean", "null": "null",
}

func (w *work) scalar(n *node, v lossless.Value) {
	number := v.Kind() == lossless.Number && (n.typ == "number" || n.typ == "integer")
	switch {
	case number && math.IsInf(v.Float(), 0):
		w.report(" must be a finite JSON number (got %s)", lazy{v})
		return
	case !fits(n.typ, v):
		w.report(" must be %s (got %s)", articles[n.typ], lazy{v})
		return
	}
	// Comparing reads all of a number's digits.
	if w.checks -= len(n.enum) * (1 + len(v.Literal())/32); w.checks <= 0 {
		return
	}
	if n.enum != nil && !contains(n.enum, v) {
		w.report(" must be one of %s (got %s)", lazy{lossless.Arr(n.enum...)}, lazy{v})
	} else if c := n.constant; c.set && !lossless.Equal(c.value, v) {
		w.report(" must be %s (got %s)", lazy{c.value}, lazy{v})
	}
}

// lazy is a value that is shown only when its violation is reported.
type lazy struct{ v lossless.Value }

// String shows the value, short and safe.
func (l lazy) String() string { return show(l.v) }

// report records a violation of the value at the place that the stack tells.
func (w *work) report(format string, args ...any) {
	if w.skip() {
		return
	}
	path := w.path().Format(w.root)
	name := path
	if name == "" {
		name = arguments
	}
	w.found.list = append(w.found.list, Violation{path, `"` + name + `"` + fmt.Sprintf(format, args...)})
}

// required reports what is missing of an object, but for what was given by a wrong
// name: that is told once, with the name.
func (w *work) required(n *node, v lossless.Value) {
	for i := range n.properties {
		p := &n.properties[i]
		if !p.required {
			continue
		}
		w.checks--
		if _, ok := v.Get(p.name); !ok && (w.unions > 0 || !misnamed(n, v, p.name)) {
			w.missing(p.name)
		}
	}
}

func (w *work) missing(name string) {
	if w.skip() {
		return
	}
	path := append(w.path(), lossless.Step{Key: name}).Format(w.root)
	w.found.list = append(w.found.list, Violation{path, `missing required property "` + path + `"`})
}

// unknown reports a property that a closed object does not have.
func (w *work) unknown(n *node, v lossless.Value, name string) {
	if w.skip() {
		return
	}
	path := w.path().Format(w.root)
	message := `unknown property "` + path + `"`
	if meant := n.meant(v, name); meant != nil && meant.required {
		message += fmt.Sprintf("; did you mean %q, which is required and missing?", meant.name)
	} else if meant != nil {
		message += fmt.Sprintf("; did you mean %q?", meant.name)
	} else {
		message += ";"
	}
	w.found.list = append(w.found.list, Violation{path, message + " allowed: " + declared(n)})
}

// skip reports whether a violation is not to be told: it only ends a branch, or
// there are enough.
func (w *work) skip() bool {
	if w.unions > 0 {
		w.failed = true
		return true
	}
	return w.found.full()
}

// path leads from the root to the child that the innermost frame has reached.
func (w *work) path() lossless.Path {
	path := make(lossless.Path, 0, len(w.stack)+1)
	for _, f := range w.stack {
		switch {
		case f.node.oneOf != nil:
		case f.v.Kind() == lossless.Object:
			path = append(path, lossless.Step{Key: f.v.Key(f.next - 1)})
		default:
			path = append(path, lossless.Step{Index: f.next - 1, IsIndex: true})
		}
	}
	return path
}

// describe names what the branches of a oneOf take.
func describe(branches []*node) string {
	var names []string
	for _, b := range branches {
		switch {
		case b.oneOf != nil:
			names = append(names, "oneOf")
		case b.typ == "":
			names = append(names, "any JSON")
		case b.constant.set:
			names = append(names, show(b.constant.value))
		case b.typ == "object":
			names = append(names, strings.TrimSpace("object "+discriminator(b)))
		default:
			names = append(names, b.typ)
		}
		if len(names) == 10 {
			break
		}
	}
	return plain.Line(strings.Join(names, " | "), 2*limits.Preview)
}

// discriminator shows the first property of an object that must be one constant.
func discriminator(n *node) string {
	for _, p := range n.properties {
		if p.node.constant.set {
			return "{" + p.name + ": " + show(p.node.constant.value) + "}"
		}
	}
	return ""
}

// declared lists the properties of an object.
func declared(n *node) string {
	if len(n.properties) == 0 {
		return "none"
	}
	var names []string
	for _, p := range n.properties[:min(len(n.properties), 20)] {
		names = append(names, p.name)
	}
	return plain.Line(strings.Join(names, ", "), 2*limits.Preview)
}
