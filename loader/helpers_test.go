package loader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/loader/settings"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/tool"
)

// The tests carry the numbers of the behaviours that compositions are specified by:
// 160-205 (loader, groups, isolation, config reload), 206-217 (includes), 220-240 (hot
// reload), 24h. Elsewhere, or overridden, with the outcome that holds here:
//
//	162, 163, 198, 205  nothing that a plugin does to itself writes a document: one that
//	                    ends itself is reported (TestEndsItself)
//	164                 there is no loader service to wait for: Settle waits
//	170                 holds between groups that lay the same; else the row is mounted anew
//	175-182, 184, 188   an isolation that changes mounts the row anew, beside the old one;
//	                    one that comes to the same touches nothing
//	193, 206-217        documents are read by loader/document; here is what becomes of rows
//	195-197, 201        the very same fiber goes on: nothing of it was touched
//	204                 a plugin that fails in an edit refuses the edit; at boot it is left out
//	218, 219            loader/document; selfmod/files
//	231, 241-246        loader/watch
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are the config of the plugin "p" of tests.
type options struct {
	Value    string   `json:"value" doc:"What its services are."`
	Provides []string `json:"provides" doc:"Services."`
	Tools    []string `json:"tools" doc:"Tools."`
	Needs    []string `json:"needs" doc:"Services that it injects."`
	Fail     bool     `json:"fail" doc:"Its body fails."`
	Panic    bool     `json:"panic" doc:"Its body panics."`
	Hang     bool     `json:"hang" doc:"Its body returns when the test says so."`
	End      bool     `json:"end" doc:"It ends itself while it starts."`
	Number   int      `json:"number" doc:"Nothing." min:"0" max:"9" default:"1"`
}

// shop has the plugins of tests, and writes down what their bodies do.
type shop struct {
	mu    sync.Mutex
	log   []string
	files map[string]string // path to code: options as JSON
	hang  chan struct{}
	begun chan string
}

func newShop() *shop {
	return &shop{files: map[string]string{}, hang: make(chan struct{}), begun: make(chan string, 10_000)}
}

func (s *shop) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, what)
}

// took gives what was written down since it was last asked, sorted.
func (s *shop) took() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.log)
	out := strings.Join(s.log, " ")
	s.log = nil
	return out
}

var optionsType = settings.For[options]()

func (s *shop) Names() []string { return []string{"broken", "p", "plain", "static"} }

func (s *shop) Lookup(name string) (Spec, bool) {
	spec := Spec{Name: name, Settings: optionsType, Static: name == "static"}
	spec.New = func(config any) (*cordis.Plugin, error) { return s.plugin(name, config.(options)), nil }
	switch name {
	case "p", "static":
	case "plain":
		spec.Settings = nil
		spec.New = func(any) (*cordis.Plugin, error) { return s.plugin(name, options{}), nil }
	case "broken":
		spec.New = func(any) (*cordis.Plugin, error) { panic("no such luck") }
	default:
		return Spec{}, false
	}
	return spec, true
}

// plugin does what its options say.
func (s *shop) plugin(name string, o options) *cordis.Plugin {
	return &cordis.Plugin{Name: name, Inject: cordis.Require(o.Needs...), Provides: o.Provides, Apply: func(c *cordis.Context, _ any) error {
		s.begun <- o.Value
		if o.Value != "" {
			s.note("+" + o.Value)
			if _, err := c.Defer("note", func(context.Context) error { s.note("-" + o.Value); return nil }); err != nil {
				return err
			}
		}
		for _, name := range o.Needs {
			v, err := c.Use(name)
			if err != nil {
				return err
			}
			s.note(fmt.Sprintf("%s=%v", name, v))
		}
		if o.Hang {
			<-s.hang
		}
		for _, name := range o.Provides {
			if _, err := c.Provide(name, o.Value); err != nil {
				return err
			}
		}
		registry, _ := tool.Service.Get(c)
		for _, name := range o.Tools {
			if _, err := registry.Register(c, toolOf(name, o.Value)); err != nil {
				return err
			}
		}
		switch {
		case o.Panic:
			panic("as it was told")
		case o.Fail:
			return errors.New("as it was told")
		case o.End:
			c.Fiber().RequestDispose()
		}
		return nil
	}}
}

var (
	noParameters = schema.Must(schema.Parameters(lossless.Obj()))
	textOutput   = schema.Must(schema.Output(schema.String("The value.")))
)

// toolOf is a tool that answers a value.
func toolOf(name, value string) *tool.Definition {
	return &tool.Definition{
		Name: name, Description: value, Parameters: noParameters,
		Output: tool.Output{Schema: textOutput, Render: func(context.Context, lossless.Text, lossless.Text) ([]tool.Block, error) {
			return []tool.Block{tool.TextBlock(value)}, nil
		}},
		Execute: func(context.Context, *tool.Exec) (tool.Outcome, error) {
			return tool.Outcome{Value: lossless.Str(value).Encode()}, nil
		},
	}
}

// Read implements Opener.
func (s *shop) Read(path string) (Code, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.files[filepath.Base(path)]
	if !ok {
		return nil, os.ErrNotExist
	}
	return code{s, filepath.Base(path), text}, nil
}

type code struct {
	s          *shop
	name, text string
}

func (c code) Hash() string { return c.text }

func (c code) Open(context.Context) (*cordis.Plugin, error) {
	v, err := lossless.Parse([]byte(c.text))
	if err != nil {
		return nil, fmt.Errorf("syntax error: %w", err)
	}
	o, faults := optionsType.Check(v)
	if len(faults) > 0 {
		return nil, errors.New(faults[0].Message)
	}
	c.s.note("open:" + c.name)
	return c.s.plugin(c.name, o.(options)), nil
}

func (c code) Discard(*cordis.Plugin) { c.s.note("discard:" + c.name) }

func (c code) MayTake(owner *cordis.Fiber) bool { return owner.Name() == "temporary" }

func (c code) Retired(claimed []*cordis.Fiber) {
	for _, f := range claimed {
		c.s.note("retired:" + f.Name())
	}
}

// world is a runtime with a registry of tools and a tree.
type world struct {
	*shop
	root  *cordis.Context
	tools *tool.Registry
	tree  *Tree
	t     testing.TB
	ctx   context.Context

	cancel context.CancelFunc
}

func newWorld(t testing.TB, edits ...func(*Options)) *world {
	t.Helper()
	w := openWorld(edits...)
	w.t = t
	t.Cleanup(w.close)
	return w
}

func openWorld(edits ...func(*Options)) *world {
	w := &world{shop: newShop(), root: cordis.New(cordis.WithDrainLimit(time.Second))}
	w.ctx, w.cancel = context.WithTimeout(context.Background(), time.Minute)
	f := must(w.root.Mount(tool.Plugin(), nil))
	if err := f.Await(w.ctx); err != nil {
		panic(err)
	}
	w.tools, _ = tool.Service.Get(w.root)
	o := Options{Catalog: w.shop, Opener: w.shop}
	for _, edit := range edits {
		edit(&o)
	}
	w.tree = must(New(w.root, o))
	return w
}

// close ends everything, and says what is left.
func (w *world) close() {
	defer w.cancel()
	select {
	case <-w.hang:
	default:
		close(w.hang)
	}
	if err := w.tree.Close(w.ctx); err != nil && w.t != nil {
		w.t.Errorf("close: %v", err)
	}
	if n := len(w.root.Runtime().Fibers()); n != 1 && w.t != nil {
		w.t.Errorf("%d fibers are left, want that of the tools", n)
	}
	if n := len(w.tree.o.Realms.realms); n != 0 && w.t != nil {
		w.t.Errorf("%d realms are left", n)
	}
	if _, err := w.root.Fiber().Dispose(w.ctx); err != nil && w.t != nil {
		w.t.Error(err)
	}
}

// rowsOf composes a document.
func rowsOf(text string) ([]document.Row, error) {
	d, faults := document.Parse(document.Layer{Name: "cordis.yml", Kind: document.User, Text: []byte(text), Dir: "/home/.dsh"})
	if err := faults.Err(); err != nil {
		return nil, err
	}
	c, faults := document.Compose([]*document.Document{d}, document.Options{})
	return c.Rows, faults.Err()
}

// apply makes a document count, and waits until it has settled.
func (w *world) apply(text string) (Report, error) {
	rows, err := rowsOf(text)
	if err != nil {
		return Report{}, err
	}
	r, err := w.tree.Apply(w.ctx, rows)
	if err == nil {
		err = w.tree.Settle(w.ctx)
	}
	return r, err
}

func (w *world) must(text string) Report {
	w.t.Helper()
	r, err := w.apply(text)
	if err != nil {
		w.t.Fatalf("apply:\n%s\n%v", text, err)
	}
	return r
}

// refused applies a document that must be refused, with a text that has all parts.
func (w *world) refused(text string, parts ...string) {
	w.t.Helper()
	before := w.digest(true)
	_, err := w.apply(text)
	if err == nil {
		w.t.Fatalf("not refused:\n%s", text)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			w.t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if after := w.digest(true); after != before {
		w.t.Errorf("what was refused left something:\n%s\nbefore:\n%s", after, before)
	}
}

// expect compares what bodies did since it was last asked.
func (w *world) expect(want string) {
	w.t.Helper()
	if got := w.took(); got != want {
		w.t.Errorf("the bodies did %q, want %q", got, want)
	}
}

// state gives a row's state and, after it, why.
func (w *world) state(id string) string {
	for _, r := range w.tree.Rows() {
		if r.ID == id {
			out := r.State
			if len(r.Waiting) > 0 {
				out += " for " + strings.Join(r.Waiting, ",")
			}
			if r.Later {
				out += " later"
			}
			if r.Withheld {
				out += " withholds"
			}
			return out
		}
	}
	return "absent"
}

func (w *world) states(ids string, want ...string) {
	w.t.Helper()
	for i, id := range strings.Fields(ids) {
		if got := w.state(id); got != want[i] {
			w.t.Errorf("row %s is %q, want %q", id, got, want[i])
		}
	}
}

func (w *world) fiber(id string) *cordis.Fiber {
	w.t.Helper()
	f, ok := w.tree.Fiber(id)
	if !ok {
		w.t.Fatalf("row %s has no fiber", id)
	}
	return f
}

func (w *world) toolNames() string {
	var names []string
	for _, v := range w.tools.List(nil) {
		names = append(names, v.Name)
	}
	return strings.Join(names, " ")
}

// digest describes everything that stands, without what differs between two runs of
// the same; with ids it is about these very fibers.
func (w *world) digest(ids bool) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	names := map[*cordis.Fiber]string{nil: "nobody"}
	for _, r := range w.tree.Rows() {
		f, ok := w.tree.Fiber(r.ID)
		if ok {
			names[f] = "row " + r.ID
		}
		add("row %s %s %s %q %v guards %v %v", r.ID, r.Name, r.State, r.Reason, r.Waiting, r.Guards, r.Withheld)
	}
	for _, f := range w.root.Runtime().Fibers() {
		name, ok := names[f]
		if !ok {
			name = "fiber " + f.Name()
			names[f] = name
		}
		if ids {
			name = fmt.Sprintf("%s #%d", name, f.ID())
		}
		var effects []string
		for _, e := range f.Effects() {
			effects = append(effects, e.Label)
		}
		add("%s below %s %s effects %v", name, f.Parent().Name(), f.State(), effects)
	}
	for _, s := range w.root.Runtime().Services() {
		if s.Name != tool.Service.Name() {
			add("service %s in %s of %s: %v", s.Name, s.Realm, names[s.Owner], s.Value)
		}
	}
	for _, v := range w.tools.List(nil) {
		add("tool %s %s of %s", v.Name, v.Description, names[v.Owner])
	}
	for _, v := range w.tools.Withheld(nil) {
		add("withheld %s", v.Name)
	}
	for key := range w.tree.o.Realms.realms {
		add("realm %s", strings.TrimPrefix(key, w.tree.prefix()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
