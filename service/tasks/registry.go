package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// Tasks keeps the tasks of all scopes.
type Tasks struct {
	mu      sync.Mutex
	closed  bool
	running int
	scopes  map[*tool.Scope]*group
	owners  map[ownerKey]*owner
}

// group holds the tasks of a scope, for as long as it has an owner.
type group struct {
	scope   *tool.Scope
	owners  int
	last    int // number of the newest task
	running int
	tasks   []*task // in the order of their start
}

// owner is a fiber that starts tasks in a scope.
type owner struct {
	key    ownerKey
	ending bool
	starts sync.WaitGroup // starts under way
}

type ownerKey struct {
	fiber *cordis.Fiber
	scope *tool.Scope
}

// task is one record. Its info is guarded by Tasks.mu.
type task struct {
	info    Info
	owner   *owner
	group   *group
	work    Work
	out     *buffer
	ended   func(Info)
	abandon context.CancelFunc // of the context of Work.Wait
	done    chan struct{}      // closed when it has ended and that was told
}

func newTasks() *Tasks {
	return &Tasks{scopes: map[*tool.Scope]*group{}, owners: map[ownerKey]*owner{}}
}

func fail(code, format string, args ...any) error {
	return &service.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Start starts a task in the scope of c, as long as c's fiber runs. Errors are
// those of Begin, CodeTooMany, CodeClosed, and that the fiber takes no effects.
func (r *Tasks) Start(c *cordis.Context, t Task) (Info, error) {
	if t.Begin == nil || t.Kind == "" {
		return Info{}, errors.New("start task: it needs a kind and a function that begins it")
	}
	o, err := r.own(c)
	if err != nil {
		return Info{}, err
	}
	g, err := r.admit(o)
	if err != nil {
		return Info{}, err
	}
	defer o.starts.Done()
	out := &buffer{}
	work, err := begin(t, out)
	if err != nil {
		r.mu.Lock()
		r.running--
		g.running--
		r.mu.Unlock()
		return Info{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &task{owner: o, group: g, work: work, out: out, ended: t.Ended, abandon: cancel, done: make(chan struct{})}
	r.mu.Lock()
	g.last++
	n.info = Info{
		ID: "t" + strconv.Itoa(g.last), Kind: t.Kind, Label: plain.Line(t.Label, limits.TaskLabel),
		Status: Running, StartedAt: time.Now().UnixMilli(),
	}
	g.tasks = append(g.tasks, n)
	info := n.info
	ending := o.ending
	r.mu.Unlock()
	if ending { // meanwhile
		work.Kill()
	}
	go r.live(ctx, n)
	return info, nil
}

// begin calls the task's function; a panic is its error.
func begin(t Task, out io.Writer) (w Work, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &cordis.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if w, err = t.Begin(out); err == nil && w == nil {
		err = errors.New("start task: nothing was begun")
	}
	return w, err
}

// own makes c's fiber an owner of tasks in c's scope, until it ends.
func (r *Tasks) own(c *cordis.Context) (*owner, error) {
	key := ownerKey{c.Fiber(), tool.ScopeOf(c)}
	r.mu.Lock()
	o := r.owners[key]
	r.mu.Unlock()
	if o != nil {
		return o, nil
	}
	_, err := c.Effect("tasks", func(s *cordis.Setup) error {
		r.mu.Lock()
		if o = r.owners[key]; o != nil { // made meanwhile
			r.mu.Unlock()
			return nil
		}
		g := r.scopes[key.scope]
		if g == nil {
			g = &group{scope: key.scope}
			r.scopes[key.scope] = g
		}
		g.owners++
		o = &owner{key: key}
		r.owners[key] = o
		r.mu.Unlock()
		s.Collect(func(context.Context) error { return r.disown(o) })
		// All of them are told before the unload undoes the first of the effects.
		told := make(chan struct{})
		stop := context.AfterFunc(c.Context(), func() { defer close(told); r.end(o) })
		s.Collect(func(context.Context) error {
			if !stop() {
				<-told // a moment: nothing waits there
			}
			return nil
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	return o, nil
}

// admit counts one more task, if it may run.
func (r *Tasks) admit(o *owner) (*group, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.scopes[o.key.scope]
	switch {
	case r.closed || o.ending || g == nil:
		return nil, fail(CodeClosed, "no background task can start any more: what would own it is ending")
	case g.running >= limits.TasksRunning:
		return nil, fail(CodeTooMany, "%d background tasks run already, as many as may: %s. Wait for one to end, or kill one", g.running, g.names())
	case r.running >= limits.TasksAll:
		return nil, fail(CodeTooMany, "%d background tasks run already in all sessions, as many as may; try again when some have ended", r.running)
	}
	g.running++
	r.running++
	o.starts.Add(1)
	return g, nil
}

// names lists the running tasks. Tasks.mu is held.
func (g *group) names() string {
	var ids []string
	for _, t := range g.tasks {
		if t.info.Status == Running {
			ids = append(ids, t.info.ID)
		}
	}
	return strings.Join(ids, ", ")
}

// live waits for the end of a task and tells it.
func (r *Tasks) live(ctx context.Context, t *task) {
	defer t.abandon()
	end := wait(ctx, t.work)
	if end.Status != Completed && end.Status != Killed {
		end.Status = Failed
	}
	r.mu.Lock()
	t.info.Status, t.info.Detail = end.Status, plain.Line(end.Detail, limits.TaskDetail)
	t.info.EndedAt = time.Now().UnixMilli()
	t.group.running--
	r.running--
	t.group.trim()
	info, quiet := t.info, t.owner.ending || r.closed
	r.mu.Unlock()
	t.out.close()
	defer close(t.done)
	if t.ended != nil && !quiet {
		told(t.ended, info)
	}
}

// wait waits for work; a panic in it is a failure.
func wait(ctx context.Context, w Work) (end Ending) {
	defer func() {
		if v := recover(); v != nil {
			end = Ending{Failed, fmt.Sprintf("panic: %v", v)}
		}
	}()
	return w.Wait(ctx)
}

// told calls what wants to know of an end; a panic there changes nothing.
func told(ended func(Info), info Info) {
	defer func() { _ = recover() }()
	ended(info)
}

// trim forgets the oldest of the tasks that have ended. Tasks.mu is held.
func (g *group) trim() {
	kept := len(g.tasks) - g.running
	g.tasks = slices.DeleteFunc(g.tasks, func(t *task) bool {
		if t.info.Status == Running || kept <= limits.TasksKept {
			return false
		}
		kept--
		return true
	})
}

// end tells the tasks of an owner to end, nil: all.
func (r *Tasks) end(o *owner) []*task {
	r.mu.Lock()
	if o != nil {
		o.ending = true
	}
	var found []*task
	for _, g := range r.scopes {
		for _, t := range g.tasks {
			if o == nil || t.owner == o {
				found = append(found, t)
			}
		}
	}
	r.mu.Unlock()
	for _, t := range found {
		t.work.Kill()
	}
	return found
}

// disown ends an owner's tasks and forgets them.
func (r *Tasks) disown(o *owner) error {
	r.end(o)
	o.starts.Wait()
	err := await(r.end(o))
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, o.key)
	g := r.scopes[o.key.scope]
	g.tasks = slices.DeleteFunc(g.tasks, func(t *task) bool { return t.owner == o })
	if g.owners--; g.owners == 0 {
		delete(r.scopes, o.key.scope)
	}
	return err
}

// close ends everything.
func (r *Tasks) close(context.Context) error {
	r.mu.Lock()
	r.closed = true
	var owners []*owner
	for _, o := range r.owners {
		owners = append(owners, o)
	}
	r.mu.Unlock()
	r.end(nil)
	for _, o := range owners {
		o.starts.Wait()
	}
	return await(r.end(nil))
}

// await waits for tasks that were told to end.
func await(all []*task) error {
	limit := time.NewTimer(limits.TaskEnd)
	defer limit.Stop()
	var left []string
	for _, t := range all {
		select {
		case <-t.done:
			continue
		default:
		}
		if left == nil {
			select {
			case <-t.done:
				continue
			case <-limit.C:
			}
		}
		t.abandon()
		left = append(left, t.info.ID)
	}
	if left != nil {
		return fmt.Errorf("end background tasks: %s did not end within %s", strings.Join(left, ", "), limits.TaskEnd)
	}
	return nil
}
