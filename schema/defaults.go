package schema

import (
	"errors"
	"fmt"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// ErrDefaults says that a value would grow too large by its defaults.
var ErrDefaults = errors.New("too much is filled in by defaults")

// ApplyDefaults returns v with the declared default in the place of each absent
// property, at the end of its object, whose object is present. A default is taken
// as written: nothing is filled in inside it, nor inside a branch of oneOf. What
// does not match the schema is left as it is. It fails with ErrDefaults when the
// defaults alone would be larger than limits.Arguments.
func (s *Schema) ApplyDefaults(v lossless.Value) (lossless.Value, error) {
	f := filler{room: limits.Arguments}
	f.enter(s.root, v)
	for len(f.stack) > 0 && f.room >= 0 {
		top := &f.stack[len(f.stack)-1]
		if top.next >= top.v.Len() {
			v = f.leave()
			continue
		}
		i := top.next
		top.next++
		if n := top.node.items; n != nil {
			f.enter(n, top.v.At(i))
		} else if p := top.node.find(top.v.Key(i)); p != nil {
			f.enter(p.node, top.v.At(i))
		}
	}
	if f.room < 0 {
		return lossless.Value{}, fmt.Errorf("%w: more than %d bytes", ErrDefaults, limits.Arguments)
	}
	return v, nil
}

// filler walks the part of a value below which a default may be absent, and
// rebuilds only what changes.
type filler struct {
	stack []filling
	room  int // bytes of defaults that may still be added
}

type filling struct {
	node  *node
	v     lossless.Value
	next  int
	items map[int]lossless.Value // the children that changed
	added []lossless.Member
}

// enter opens a frame for a container of the node's type, and finds what it lacks.
func (f *filler) enter(n *node, v lossless.Value) {
	if !n.fills || n.typ != v.Kind().String() {
		return
	}
	frame := filling{node: n, v: v}
	for i := range n.properties {
		p := &n.properties[i]
		if !p.node.def.set {
			continue
		}
		if _, ok := v.Get(p.name); !ok {
			f.room -= len(p.name) + p.node.size
			frame.added = append(frame.added, lossless.M(p.name, p.node.def.value))
		}
		if f.room < 0 {
			break
		}
	}
	f.stack = append(f.stack, frame)
}

// leave closes the innermost frame and returns its value; the frame around it takes note
// when it changed.
func (f *filler) leave() lossless.Value {
	top := f.stack[len(f.stack)-1]
	f.stack = f.stack[:len(f.stack)-1]
	if top.items == nil && top.added == nil {
		return top.v
	}
	v := top.rebuild()
	if len(f.stack) > 0 {
		up := &f.stack[len(f.stack)-1]
		if up.items == nil {
			up.items = map[int]lossless.Value{}
		}
		up.items[up.next-1] = v
	}
	return v
}

func (f *filling) rebuild() lossless.Value {
	child := func(i int) lossless.Value {
		if v, ok := f.items[i]; ok {
			return v
		}
		return f.v.At(i)
	}
	if f.v.Kind() == lossless.Array {
		items := make([]lossless.Value, f.v.Len())
		for i := range items {
			items[i] = child(i)
		}
		return lossless.Arr(items...)
	}
	members := make([]lossless.Member, 0, f.v.Len()+len(f.added))
	for i := range f.v.Len() {
		members = append(members, lossless.M(f.v.Key(i), child(i)))
	}
	return lossless.Obj(append(members, f.added...)...)
}
