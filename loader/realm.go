package loader

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
)

// Realms are the realms that rows name by labels. One label is one realm for all trees
// that share the set, as long as a row of one of them uses it. All methods are safe for
// concurrent use.
type Realms struct {
	mu     sync.Mutex
	realms map[string]*cordis.Realm
	uses   map[*Tree]map[string]bool // by tree, the keys
}

// NewRealms returns an empty set.
func NewRealms() *Realms {
	return &Realms{realms: map[string]*cordis.Realm{}, uses: map[*Tree]map[string]bool{}}
}

// labelled begins the key of a label. That of a row's own realm begins with the tree.
const labelled = "="

// realm gives the realm of a key for a tree, which uses it from now on.
func (r *Realms) realm(t *Tree, key string) *cordis.Realm {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.realms[key] == nil {
		label, ok := strings.CutPrefix(key, labelled)
		if !ok {
			label = strings.TrimPrefix(key, t.prefix())
		}
		r.realms[key] = cordis.NewRealm(label)
	}
	if r.uses[t] == nil {
		r.uses[t] = map[string]bool{}
	}
	r.uses[t][key] = true
	return r.realms[key]
}

// keep says which realms a tree uses, and forgets those that none does.
func (r *Realms) keep(t *Tree, keys map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(keys) == 0 {
		delete(r.uses, t)
	} else {
		r.uses[t] = maps.Clone(keys)
	}
	maps.DeleteFunc(r.realms, func(key string, _ *cordis.Realm) bool {
		for _, used := range r.uses {
			if used[key] {
				return false
			}
		}
		return true
	})
}

// surroundings are what groups and the row itself lay on its context.
type surroundings struct {
	isolate   map[string]string // service to the key of its realm
	intercept []interception    // outermost first
	inject    []cordis.Dependency
}

type interception struct {
	service string
	config  lossless.Value
}

// within adds what a row lays on itself and on what is in it.
func (s surroundings) within(t *Tree, r document.Row) surroundings {
	if len(r.Isolate) > 0 {
		next := maps.Clone(s.isolate)
		if next == nil {
			next = map[string]string{}
		}
		for service, realm := range r.Isolate {
			if realm.Label == "" {
				next[service] = t.prefix() + r.ID
			} else {
				next[service] = labelled + realm.Label
			}
		}
		s.isolate = next
	}
	if len(r.Intercept) > 0 {
		next := slices.Clip(s.intercept)
		for _, service := range slices.Sorted(maps.Keys(r.Intercept)) {
			next = append(next, interception{service, r.Intercept[service]})
		}
		s.intercept = next
	}
	s.inject = merge(s.inject, r.Inject)
	return s
}

// merge adds dependencies to those that are there. Of two for one service the config
// of the added one counts, if it has one; it is optional if both are.
func merge(deps, more []cordis.Dependency) []cordis.Dependency {
	if len(more) == 0 {
		return deps
	}
	out := slices.Clone(deps)
	for _, d := range more {
		i := slices.IndexFunc(out, func(o cordis.Dependency) bool { return o.Name == d.Name })
		if i < 0 {
			out = append(out, d)
			continue
		}
		out[i].Optional = out[i].Optional && d.Optional
		if d.Config != nil {
			out[i].Config = d.Config
		}
	}
	return out
}

// on derives the context of a row.
func (s surroundings) on(t *Tree, c *cordis.Context) *cordis.Context {
	for _, service := range slices.Sorted(maps.Keys(s.isolate)) {
		c = c.Isolate(service, t.o.Realms.realm(t, s.isolate[service]))
	}
	for _, i := range s.intercept {
		c = c.Intercept(i.service, i.config)
	}
	return c
}

func (s surroundings) equal(o surroundings) bool {
	return maps.Equal(s.isolate, o.isolate) && slices.EqualFunc(s.inject, o.inject, sameDependency) &&
		slices.EqualFunc(s.intercept, o.intercept, func(a, b interception) bool {
			return a.service == b.service && lossless.Equal(a.config, b.config)
		})
}

func sameDependency(a, b cordis.Dependency) bool {
	x, _ := a.Config.(lossless.Value)
	y, _ := b.Config.(lossless.Value)
	return a.Name == b.Name && a.Optional == b.Optional && (a.Config == nil) == (b.Config == nil) && lossless.Equal(x, y)
}
