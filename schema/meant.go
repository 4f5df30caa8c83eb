package schema

import (
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/lossless"
)

// How large a closed object is of which it is told what was meant.
const (
	meantProperties = 32
	meantMembers    = 16
)

// meant is the property that an unknown one of a closed object is most likely to be:
// one that is not given, or may be but by its default.
func (n *node) meant(v lossless.Value, name string) *property {
	if len(n.properties) > meantProperties || v.Len() > meantMembers {
		return nil
	}
	var absent []string
	for _, p := range n.properties {
		if _, ok := v.Get(p.name); !ok || p.node.def.set {
			absent = append(absent, p.name)
		}
	}
	return n.find(plain.Nearest(name, absent))
}

// misnamed says whether a missing property of a closed object is what an unknown one
// of it is most likely to be.
func misnamed(n *node, v lossless.Value, missing string) bool {
	if !n.closed() {
		return false
	}
	for name := range v.Members() {
		if n.find(name) != nil {
			continue
		}
		if p := n.meant(v, name); p != nil && p.name == missing {
			return true
		}
	}
	return false
}
