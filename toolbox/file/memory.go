package file

import (
	"container/list"
	"context"
	"strconv"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

// memory knows at which version a scope has last seen each file. The oldest scopes
// and files go first.
type memory struct {
	mu     sync.Mutex
	scopes map[*tool.Scope]*list.Element // of *seen
	order  *list.List                    // the latest first
}

// seen is what one scope has seen.
type seen struct {
	scope *tool.Scope
	files map[string]*list.Element // of version
	order *list.List               // the latest first
}

type version struct{ path, version string }

func newMemory() *memory {
	return &memory{scopes: map[*tool.Scope]*list.Element{}, order: list.New()}
}

// see notes a version.
func (m *memory) see(s *tool.Scope, path, v string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.scopes[s]
	if !ok {
		at = m.order.PushFront(&seen{s, map[string]*list.Element{}, list.New()})
		m.scopes[s] = at
		if m.order.Len() > limits.FileScopes {
			oldest, _ := m.order.Remove(m.order.Back()).(*seen)
			delete(m.scopes, oldest.scope)
		}
	}
	m.order.MoveToFront(at)
	in, _ := at.Value.(*seen)
	if file, ok := in.files[path]; ok {
		file.Value = version{path, v}
		in.order.MoveToFront(file)
		return
	}
	in.files[path] = in.order.PushFront(version{path, v})
	if in.order.Len() > limits.FileRemembered {
		oldest, _ := in.order.Remove(in.order.Back()).(version)
		delete(in.files, oldest.path)
	}
}

// version gives the version that a scope has last seen; "" for none.
func (m *memory) version(s *tool.Scope, path string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.scopes[s]
	if !ok {
		return ""
	}
	in, _ := at.Value.(*seen)
	file, ok := in.files[path]
	if !ok {
		return ""
	}
	v, _ := file.Value.(version)
	return v.version
}

// model tells whether the model itself acts, and in which scope: within a call, and
// not through a temporary plugin.
func model(ctx context.Context) (*tool.Scope, bool) {
	a := tool.ActorOf(ctx)
	return a.Scope, a.Exec != nil && a.Mount == nil
}

// watch remembers what the model sees, and refuses changes of what it has not seen.
func (t *tools) watch() error {
	own := tool.ScopeOf(t.c)
	_, err := fs.Observed.On(t.c, func(ctx context.Context, o fs.Observation) {
		if scope, ok := model(ctx); ok && scope.Within(own) {
			t.memory.see(scope, o.Path, o.Version)
		}
	})
	if err != nil {
		return err
	}
	// First of all: nobody is asked about what is refused anyway.
	_, err = fs.WriteIntent.On(t.c, func(ctx context.Context, w fs.Write, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		if w.Exists {
			if err := t.current(ctx, "write", w.Path, w.Version); err != nil {
				return tool.Decision{}, err
			}
		}
		return next(ctx)
	}, cordis.Prepend())
	if err != nil {
		return err
	}
	_, err = fs.EditIntent.On(t.c, func(ctx context.Context, e fs.EditRequest, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		if err := t.current(ctx, "edit", e.Path, e.Version); err != nil {
			return tool.Decision{}, err
		}
		return next(ctx)
	}, cordis.Prepend())
	return err
}

// current refuses what the model has not seen, or not as it is now. A version that
// the change itself demands is checked by fs.
func (t *tools) current(ctx context.Context, doing, path, demanded string) error {
	scope, ok := model(ctx)
	if !ok || !scope.Within(tool.ScopeOf(t.c)) {
		return nil
	}
	known := t.memory.version(scope, path)
	if known == "" {
		return &service.Error{Code: fs.CodeNotObserved, Message: t.unread(doing, path)}
	}
	if demanded == known {
		return nil
	}
	now, err := t.files.Stat(ctx, fs.Path(path), nil)
	if err != nil {
		return err
	}
	if demanded != "" || now == nil || now.Version != known {
		return &service.Error{Code: fs.CodeStaleVersion, Message: t.stale(doing, path)}
	}
	return nil
}

func (t *tools) unread(doing, path string) string {
	shown := strconv.Quote(t.shown(path))
	return doing + " " + shown + ": the file is there and was not read in this session, or not since it was resumed, so nothing was changed. Read it with the tool read, then " + doing + " it."
}

func (t *tools) stale(doing, path string) string {
	shown := strconv.Quote(t.shown(path))
	return doing + " " + shown + ": the file has changed since it was last read (a command, a person or another agent changed it), so nothing was changed. Read it again, then " + doing + " what is there now."
}
