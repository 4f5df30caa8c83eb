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

// Realms are the realms that rows name by labels. One label is one realm. All methods
// are safe for concurrent use.
type Realms struct {
	mu     sync.Mutex
	realms map[string]*cordis.Realm
}

// NewRealms returns an empty set.
func NewRealms() *Realms { return &Realms{realms: map[string]*cordis.Realm{}} }

// realm gives the realm of a key, which stays the same as long as it is kept.
func (r *Realms) realm(key string) *cordis.Realm {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.realms[key] == nil {
		r.realms[key] = cordis.NewRealm(strings.TrimPrefix(key, labelled))
	}
	return r.realms[key]
}

// private keys are those of rows; a label's begins with labelled, which no id does.
const labelled = "="

// keep forgets the private realms of rows that are not among ids. Realms with labels
// cost a name each and may be another tree's.
func (r *Realms) keep(tree *Tree, ids map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	prefix := tree.prefix()
	maps.DeleteFunc(r.realms, func(key string, _ *cordis.Realm) bool {
		rest, private := strings.CutPrefix(key, prefix)
		id, _, _ := strings.Cut(rest, "/")
		return private && !ids[id]
	})
}

// surroundings are what groups and the row itself lay on its context.
type surroundings struct {
	isolate   map[string]string // service to the key of its realm
	intercept []interception    // outermost first
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
				next[service] = t.prefix() + r.ID + "/" + service
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
	return s
}

// on derives the context of a row.
func (s surroundings) on(t *Tree, c *cordis.Context) *cordis.Context {
	for _, service := range slices.Sorted(maps.Keys(s.isolate)) {
		c = c.Isolate(service, t.o.Realms.realm(s.isolate[service]))
	}
	for _, i := range s.intercept {
		c = c.Intercept(i.service, i.config)
	}
	return c
}

func (s surroundings) equal(o surroundings) bool {
	return maps.Equal(s.isolate, o.isolate) && slices.EqualFunc(s.intercept, o.intercept, func(a, b interception) bool {
		return a.service == b.service && lossless.Equal(a.config, b.config)
	})
}
