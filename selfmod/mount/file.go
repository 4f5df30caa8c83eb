package mount

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/tool"
)

// Code is a plugin file as a [Set] takes it.
type Code struct {
	Path  string // as messages show it: ./plugins/greet.js
	Entry string // the one of Files that is the module
	Files map[string]string
	Hash  string // of all of it
}

// Census asks every Set of a runtime for its plugin files: the function is called
// with each.
var Census = cordis.NewEmit[func(*Mount)]("selfmod/files")

// Files are the plugin files of c's runtime that the scope has, ordered by path.
func Files(ctx context.Context, c *cordis.Context, scope *tool.Scope) []*Mount {
	var all []*Mount
	Census.Emit(ctx, c, func(m *Mount) {
		if scope.Within(tool.ScopeOf(m.set.ctx)) {
			all = append(all, m)
		}
	})
	slices.SortStableFunc(all, func(a, b *Mount) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Open loads a plugin file in a machine of its own and gives it as a plugin, which may
// be mounted once; nothing is left of one that cannot be loaded. The machine ends with
// the plugin's fiber, or with Discard.
func (s *Set) Open(ctx context.Context, code Code) (*Mount, error) {
	m := newMount(s, s.past.number(), code.Files[code.Entry], func() {})
	m.ID, m.code = code.Path, &code
	close(m.started)
	s.mu.Lock()
	if len(s.mounts) >= limits.PluginFiles {
		s.mu.Unlock()
		return nil, fmt.Errorf("open %s: %d plugin files are open, the most that are allowed", code.Path, limits.PluginFiles)
	}
	s.mounts[m.Number] = m
	s.mu.Unlock()
	if err := m.open(ctx); err != nil {
		m.ending.Store(true)
		m.close(context.WithoutCancel(ctx))
		return nil, err
	}
	return m, nil
}

// open loads the code and makes the plugin.
func (m *Mount) open(ctx context.Context) error {
	if err := m.set.follow(); err != nil {
		return err
	}
	vm, loaded, err := m.load(ctx, "")
	if err != nil {
		return m.refused(err)
	}
	deps, err := m.dependencies(loaded.Inject)
	m.adopt(vm, loaded, deps)
	if err == nil {
		m.schema, err = configSchema(configOf(loaded))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.who(), err)
	}
	var provides []string
	for _, text := range m.code.Files {
		provides = append(provides, likelyProvides(text)...)
	}
	slices.Sort(provides)
	m.plugin = &cordis.Plugin{
		Name: m.Name(), Inject: deps, Provides: slices.Compact(provides), Config: m.checked, Apply: m.applyFile,
	}
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	m.set.files[m.plugin] = m
	return nil
}

// refused is why a file could not be loaded, as its author reads it.
func (m *Mount) refused(err error) error {
	e := new(sandbox.Error)
	switch {
	case errors.As(err, &e) && e.Code == wire.CodeSyntax && e.Fault != nil:
		return &Failure{Text: m.label() + " failed to parse:\n" + strings.TrimRight(e.Fault.Excerpt+"\n"+hintOf(e.Fault, ""), "\n"), Err: err}
	case strings.Contains(err.Error(), m.label()):
		return err
	}
	return fmt.Errorf("%s: %w", m.label(), err)
}

// Plugin is what the file exports, to be mounted. Nil for a temporary plugin.
func (m *Mount) Plugin() *cordis.Plugin { return m.plugin }

// Code is the plugin file's; nil for a temporary plugin.
func (m *Mount) Code() *Code { return m.code }

// Config is the schema of what a plugin file's configuration may be; nil: it takes none.
func (m *Mount) Config() *schema.Schema { return m.schema }

// Scope is where the plugin's Set mounts; nil is the global layer.
func (m *Mount) Scope() *tool.Scope { return tool.ScopeOf(m.set.ctx) }

// Discard ends the machine of a plugin file that was never mounted.
func (m *Mount) Discard(ctx context.Context) {
	if m.code != nil && m.Fiber() == nil && m.ending.CompareAndSwap(false, true) {
		m.close(ctx)
	}
}

// close ends the machine of a plugin file and forgets it.
func (m *Mount) close(ctx context.Context) {
	m.guard(nil)
	m.mu.Lock()
	vm := m.vm
	m.mu.Unlock()
	if vm != nil {
		vm.Close(ctx)
	}
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	delete(m.set.mounts, m.Number)
	delete(m.set.files, m.plugin)
}

// configSchema compiles what a module exports as Config; nil: it exports none. What
// it does not name is refused, unless it says additionalProperties.
func configSchema(declared json.RawMessage) (*schema.Schema, error) {
	if absent(declared) {
		return nil, nil
	}
	v, err := lossless.Parse(declared)
	if err != nil {
		return nil, fmt.Errorf("read Config: %w", err)
	}
	s, err := schema.Parameters(v)
	if err != nil {
		return nil, fmt.Errorf("the exported Config %w", err)
	}
	if _, said := s.Value().Get("additionalProperties"); said {
		return s, nil
	}
	return schema.Parameters(schema.Closed(s.Value()))
}

// checked is a configuration with its defaults filled in, as canonical JSON, or every
// violation of what the file's Config asks for.
func (m *Mount) checked(raw any) (any, error) {
	v, err := configValue(raw)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of %s: %w", m.label(), err)
	}
	if m.schema == nil {
		if v.Kind() == lossless.Object && v.Len() == 0 {
			return v.Encode(), nil
		}
		return nil, fmt.Errorf("%s takes no config: it exports no Config that says what it takes; write `export const Config = { … }`, a map of property names to nodes as in a tool's parameters, or leave config out", m.label())
	}
	if v, err = m.schema.ApplyDefaults(v); err != nil {
		return nil, fmt.Errorf("fill the configuration of %s: %w", m.label(), err)
	}
	if wrong := m.schema.Validate("config", v); len(wrong) > 0 {
		return nil, fmt.Errorf("the configuration of %s does not fit its Config: %w", m.label(), &schema.Error{Violations: wrong})
	}
	return v.Encode(), nil
}

// configValue reads a configuration as whoever mounts the plugin gives it.
func configValue(raw any) (lossless.Value, error) {
	var v lossless.Value
	var err error
	switch raw := raw.(type) {
	case nil:
		return lossless.Obj(), nil
	case lossless.Value:
		v = raw
	case json.RawMessage:
		v, err = lossless.Parse(raw)
	case []byte:
		v, err = lossless.Parse(raw)
	default:
		v, err = lossless.From(raw)
	}
	if err == nil && v.Kind() == lossless.Null {
		return lossless.Obj(), nil
	}
	return v, err
}

// applyFile is the body of a plugin file's fiber.
func (m *Mount) applyFile(c *cordis.Context, config any) error {
	if c.Fiber() != m.Fiber() {
		return fmt.Errorf("%s is mounted already: open the file again for another", m.who())
	}
	text, _ := config.(lossless.Text)
	m.mu.Lock()
	m.config = text
	m.mu.Unlock()
	return m.apply(m.marked(c), nil)
}

// follow has a Set that has plugin files learn of their fibers.
func (s *Set) follow() error {
	s.mu.Lock()
	had := s.following
	s.following = true
	s.mu.Unlock()
	if had {
		return nil
	}
	_, err := cordis.PluginChanged.On(s.ctx, func(_ context.Context, e cordis.PluginChange) {
		if m := s.fileOf(e.Fiber); m != nil && e.Mounted {
			m.mu.Lock()
			if m.fiber == nil {
				m.fiber = e.Fiber
			}
			m.mu.Unlock()
		}
	})
	if err == nil {
		_, err = cordis.StatusChanged.On(s.ctx, func(ctx context.Context, e cordis.StatusChange) {
			if e.New != cordis.Disposed {
				return
			}
			if m := s.fileOf(e.Fiber); m != nil && m.Fiber() == e.Fiber {
				m.ending.Store(true)
				m.close(context.WithoutCancel(ctx))
			}
		})
	}
	if err == nil {
		_, err = Census.On(s.ctx, func(_ context.Context, tell func(*Mount)) {
			for _, m := range s.List() {
				if m.code != nil && m.Fiber() != nil {
					tell(m)
				}
			}
		})
	}
	return err
}

// fileOf is the plugin file that a fiber was mounted from; nil: it is none of s.
func (s *Set) fileOf(f *cordis.Fiber) *Mount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[f.Plugin()]
}

// broke asks whether a plugin file that has brought down its machine is loaded again;
// an error says why not.
func (m *Mount) broke(why error) error {
	if m.code == nil || m.set.cfg.Broke == nil {
		return nil
	}
	return m.set.cfg.Broke(m.code, errors.New(plain.Line(why.Error(), limits.SourceLine)))
}

// configOf is what a module exports as its Config; nil for nothing.
func configOf(l wire.Loaded) json.RawMessage {
	if l.Config == "" {
		return nil
	}
	return json.RawMessage(l.Config)
}

// Retired says whether the plugin is going because a plugin file took its names over.
func (m *Mount) Retired() bool { return m.retired.Load() }

// Ended says whether a plugin file's machine has been given up, with its fiber or by
// Discard.
func (m *Mount) Ended() bool { return m.ending.Load() }

// Retire does the bookkeeping of a temporary plugin that a stage removes, because by,
// a plugin file, took its names over; once, and without waiting for it. gone waits
// until the stage has asked for its disposal.
func (m *Mount) Retire(by string, gone func()) {
	if !m.ending.CompareAndSwap(false, true) {
		return
	}
	s, fate := m.set, "was replaced by plugin file "+by
	tools := m.toolNames()
	// Known at once, although calls may still run there.
	s.past.note(Gone{ID: m.ID, Plugin: m.Name(), What: fate})
	m.retired.Store(true)
	s.spawn(func() {
		gone()
		ctx := context.Background()
		_, _ = m.end(ctx) // what its disposers said is logged
		s.drop(m)
		s.happened(ctx, m, Went, "")
		for _, name := range tools {
			s.cfg.Registry.NoteGone(name, m.Scope(), fmt.Sprintf("it went with %s, which %s", m.who(), fate))
		}
	})
}

// toolNames are the tools that the mount registers in its present run, at most
// limits.Tools of them.
func (m *Mount) toolNames() []string {
	m.mu.Lock()
	r := m.run
	m.mu.Unlock()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tools)
}
