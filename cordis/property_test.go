package cordis

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The model: in each of a few slots at most one plugin is mounted. The plugin of
// slot i provides s<i> and may mount a child, which provides c<i>. Both inject
// any of these names. A configuration is a number; a body fails for negative ones.
const slots = 5

type slot struct {
	fiber  *Fiber
	inject []string
	child  []string // what the child injects; nil: no child
	config int
	ran    []int   // configurations of the runs, in order
	up     [2]bool // the body, and the child's, has run and is not undone
	inner  *Fiber  // the latest child
}

type machine struct {
	t       *rapid.T
	root    *Context
	slots   [slots]*slot
	retired []*Fiber
	r       *Handle // of the service r; nil: not provided
	version int     // its value
}

// parse gives the slot and the part of it (0: the plugin, 1: its child) that
// provide a service; the slot of r is -1.
func parse(service string) (slot, part int) {
	if service == "r" {
		return -1, 0
	}
	return int(service[1] - '0'), int(service[0]-'c')/('s'-'c') ^ 1
}

// body makes the body of slot i, or of its child, which checks what it may rely
// on: it runs once at a time, what it injects is there until it is undone.
func (m *machine) body(s *slot, i, which int, inject []string) func(*Context, any) error {
	check := func(c *Context, when string) {
		for _, n := range inject {
			j, part := parse(n)
			up := j < 0 || m.slots[j] != nil && m.slots[j].up[part]
			if _, err := c.Use(n); err != nil || !up {
				m.t.Errorf("slot %d.%d, %s: service %s: %v, provider up: %v", i, which, when, n, err, up)
			}
		}
	}
	return func(c *Context, config any) error {
		if s.up[which] {
			m.t.Errorf("slot %d.%d runs twice at a time", i, which)
		}
		check(c, "body")
		s.up[which] = true
		must(c.Provide(fmt.Sprintf("%c%d", "sc"[which], i), i))
		must(c.Defer("check", func(context.Context) error {
			check(c, "disposer")
			s.up[which] = false
			return nil
		}))
		if which == 0 {
			s.ran = append(s.ran, config.(int))
			if s.child != nil {
				s.inner = must(c.Mount(&Plugin{Name: "child", Inject: Require(s.child...), Apply: m.body(s, i, 1, s.child)}, nil))
			}
			if config.(int) < 0 {
				return errTest
			}
		}
		return nil
	}
}

// act draws one operation and does it, without waiting.
func (m *machine) act(i int) {
	t := m.t
	names := []string{"r"}
	for j := range slots {
		names = append(names, fmt.Sprintf("s%d", j), fmt.Sprintf("c%d", j))
	}
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID[string])
	config := rapid.IntRange(-1, 3)
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	if rapid.IntRange(0, 3).Draw(t, "flip r") == 0 {
		if m.r == nil {
			m.version++
			m.r = must(m.root.Provide("r", m.version))
		} else {
			m.r.Dispose(expired)
			m.r = nil
		}
	}
	s := m.slots[i]
	switch op := rapid.SampledFrom([]string{"dispose", "update", "restart", "update"}).Draw(t, "op"); {
	case s == nil:
		s = &slot{inject: some.Draw(t, "inject"), config: config.Draw(t, "config")}
		if rapid.Bool().Draw(t, "with child") {
			s.child = append([]string{}, some.Draw(t, "child injects")...)
		}
		m.slots[i] = s
		s.fiber = must(m.root.Mount(&Plugin{Name: fmt.Sprint("slot", i), Inject: Require(s.inject...), Apply: m.body(s, i, 0, s.inject)}, s.config))
	case op == "dispose":
		s.fiber.RequestDispose()
		m.retired = append(m.retired, s.fiber)
	case op == "update":
		s.config = config.Draw(t, "config")
		s.fiber.Update(expired, s.config)
	case op == "restart":
		s.fiber.Restart(expired)
	}
}

// expected computes which bodies must be up when nothing moves any more.
func (m *machine) expected() (up [slots][2]bool) {
	for changed := true; changed; {
		changed = false
		has := func(names []string) bool {
			return !slices.ContainsFunc(names, func(n string) bool {
				j, part := parse(n)
				return j < 0 && m.r == nil || j >= 0 && !up[j][part]
			})
		}
		for i, s := range m.slots {
			if s == nil || s.config < 0 || s.fiber.State() == Disposed {
				continue
			}
			if !up[i][0] && has(s.inject) {
				up[i][0], changed = true, true
			}
			if up[i][0] && s.child != nil && !up[i][1] && has(s.child) {
				up[i][1], changed = true, true
			}
		}
	}
	return up
}

// check compares the settled runtime with the model.
func (m *machine) check() {
	up := m.expected()
	for i, s := range m.slots {
		if s == nil {
			continue
		}
		state, want := s.fiber.State(), Pending
		switch {
		case state == Disposed:
			want = Disposed
		case up[i][0]:
			want = Active
		case s.config < 0 && state == Failed:
			want = Failed // it had what it injects, at some time
		}
		if state != want || s.up != up[i] {
			m.t.Fatalf("slot %d is %s with %v up, want %s with %v (waiting %+v)", i, state, s.up, want, up[i], s.fiber.Waiting())
		}
		if state == Active && s.ran[len(s.ran)-1] != s.config {
			m.t.Fatalf("slot %d runs with %v, want %d", i, s.ran, s.config)
		}
		if state == Active && slices.Contains(s.inject, "r") && must(s.fiber.Context().Use("r")) != m.version {
			m.t.Fatalf("slot %d has an old r", i)
		}
	}
	for _, f := range m.retired {
		if f.State() != Disposed {
			m.t.Fatalf("disposed fiber %q is %s", f.Name(), f.State())
		}
	}
}

// sweep empties the slots whose fibers are disposed.
func (m *machine) sweep() {
	for i, s := range m.slots {
		if s != nil && s.fiber.State() == Disposed {
			m.slots[i] = nil
		}
	}
}

// TestPropertyStepped runs random programs, with random interleavings of their
// transitions, against the model. A failure replays from rapid's seed.
func TestPropertyStepped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stepper := NewStepper(rapid.Uint64().Draw(t, "seed"))
		m := &machine{t: t, root: New(WithStepper(stepper))}
		empty := m.root.Runtime().Digest()
		for range rapid.IntRange(1, 30).Draw(t, "operations") {
			m.sweep()
			m.act(rapid.IntRange(0, slots-1).Draw(t, "slot"))
			for range rapid.IntRange(0, 6).Draw(t, "steps") {
				stepper.Step()
			}
			if rapid.IntRange(0, 4).Draw(t, "settle") == 0 {
				if !stepper.Run(10000) {
					t.Fatal("does not settle")
				}
				m.check()
			}
		}
		if !stepper.Run(10000) {
			t.Fatal("does not settle")
		}
		m.check()
		m.root.Fiber().RequestDispose() // and r with it
		if !stepper.Run(10000) {
			t.Fatal("does not settle")
		}
		if diff := cmp.Diff(empty, m.root.Runtime().Digest()); diff != "" {
			t.Fatalf("something is left:\n%s", diff)
		}
	})
}

// TestPropertyReplay holds that equal seeds give equal runs.
func TestPropertyReplay(t *testing.T) {
	run := func(seed uint64) []string {
		tr := &trace{}
		s := NewStepper(seed)
		root := New(WithStepper(s))
		statuses(root, tr)
		for i := range 4 {
			must(root.Mount(plugin(fmt.Sprint("p", i), func(c *Context) error {
				_, err := c.Provide(fmt.Sprint("s", i), i)
				return err
			}, []string{"s1", "s2", "s3", "s4"}[i]), nil))
		}
		must(root.Mount(provider("end", "s4"), nil))
		s.Run(1000)
		root.Fiber().RequestDispose()
		s.Run(1000)
		return tr.take()
	}
	different := false
	for seed := range uint64(5) {
		a, b := run(seed), run(seed)
		wantEqual(t, a, b)
		different = different || !slices.Equal(a, run(seed+100))
	}
	if !different {
		t.Fatal("all seeds give one interleaving")
	}
}
