package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// work is work that ends when a test says so, or when it is killed.
type work struct {
	end    chan Ending // buffered
	killed sync.Once
	deaf   bool // it does not listen to Kill
	onKill func()
	files  []string
	out    io.Writer
}

func newWork() *work { return &work{end: make(chan Ending, 1)} }

func (w *work) Wait(ctx context.Context) Ending {
	select {
	case e := <-w.end:
		return e
	case <-ctx.Done():
		return Ending{Killed, "given up"}
	}
}

func (w *work) Kill() {
	w.killed.Do(func() {
		if w.onKill != nil {
			w.onKill()
		}
		if !w.deaf {
			w.finish(Killed, "killed")
		}
	})
}

func (w *work) finish(s Status, detail string) {
	select {
	case w.end <- Ending{s, detail}:
	default:
	}
}

func (w *work) Files() []string { return w.files }

// world is a runtime with the service.
type world struct {
	t     *testing.T
	root  *cordis.Context
	fiber *cordis.Fiber
	tasks *Tasks
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: cordis.New()}
	w.fiber = w.mount(w.root, Plugin())
	w.tasks, _ = Service.Get(w.root)
	t.Cleanup(func() { dispose(t, w.root.Fiber()) })
	return w
}

func (w *world) mount(c *cordis.Context, p *cordis.Plugin) *cordis.Fiber {
	w.t.Helper()
	f, err := c.Mount(p, nil)
	if err == nil {
		err = f.Await(context.Background())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// owner mounts a plugin in a scope, and gives its context.
func (w *world) owner(s *tool.Scope) (*cordis.Context, *cordis.Fiber) {
	w.t.Helper()
	var own *cordis.Context
	f := w.mount(tool.WithScope(w.root, s), &cordis.Plugin{Name: "owner", Inject: cordis.Require("tasks"),
		Apply: func(c *cordis.Context, _ any) error { own = c; return nil }})
	return own, f
}

func (w *world) start(c *cordis.Context, n *work, ended func(Info)) Info {
	w.t.Helper()
	i, err := w.tasks.Start(c, Task{Kind: "test", Label: "a label", Ended: ended, Begin: func(out io.Writer) (Work, error) {
		n.out = out
		return n, nil
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

func dispose(t *testing.T, f *cordis.Fiber) {
	t.Helper()
	if _, err := f.Dispose(context.Background()); err != nil {
		t.Error(err)
	}
}

func wantCode(t *testing.T, err error, code string) string {
	t.Helper()
	if service.CodeOf(err) != code {
		t.Fatalf("got error %v, want code %s", err, code)
	}
	return err.Error()
}

func ids(all []Info) string {
	var out []string
	for _, i := range all {
		out = append(out, fmt.Sprintf("%s %s", i.ID, i.Status))
	}
	return strings.Join(out, ", ")
}

func TestLifeOfATask(t *testing.T) {
	w := newWorld(t)
	c, _ := w.owner(tool.NewScope("s", nil))
	s := tool.ScopeOf(c)
	n := newWork()
	ended := make(chan Info, 1)
	i := w.start(c, n, func(i Info) { ended <- i })
	if i.ID != "t1" || i.Status != Running || i.Label != "a label" || i.Kind != "test" || i.StartedAt == 0 || i.EndedAt != 0 {
		t.Errorf("started: %+v", i)
	}
	_, _ = io.WriteString(n.out, "hello\n")
	o, err := w.tasks.Output(s, "t1")
	if err != nil || o.Text != "hello\n" || o.More != 0 || o.Lost != 0 || o.Task.Status != Running {
		t.Errorf("output: %+v, %v", o, err)
	}
	if o, _ := w.tasks.Output(s, "t1"); o.Text != "" {
		t.Errorf("read twice: %q", o.Text)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if i, err := w.tasks.Wait(short, s, "t1"); !errors.Is(err, context.DeadlineExceeded) || i.Status != Running {
		t.Errorf("waited too long: %+v, %v", i, err)
	}
	_, _ = io.WriteString(n.out, "bye")
	n.files = []string{"/f"}
	n.finish(Failed, "exit code 3")
	i, err = w.tasks.Wait(t.Context(), s, "t1")
	if err != nil || i.Status != Failed || i.Detail != "exit code 3" || i.EndedAt == 0 {
		t.Errorf("ended: %+v, %v", i, err)
	}
	if got := <-ended; got != i {
		t.Errorf("told %+v, want %+v", got, i)
	}
	if o, err = w.tasks.Output(s, "t1"); err != nil || o.Text != "bye" || o.Task != i || cmp.Diff(o.Files, []string{"/f"}) != "" {
		t.Errorf("output: %+v, %v", o, err)
	}
	if killed, err := w.tasks.Kill(s, "t1"); killed || err != nil {
		t.Errorf("killed what had ended: %v, %v", killed, err)
	}
	if i := w.start(c, newWork(), nil); i.ID != "t2" {
		t.Errorf("the second is %s", i.ID)
	}
	if got := ids(w.tasks.List(s)); got != "t1 failed, t2 running" {
		t.Errorf("list: %s", got)
	}
}

func TestKill(t *testing.T) {
	w := newWorld(t)
	c, _ := w.owner(nil)
	w.start(c, newWork(), nil)
	if killed, err := w.tasks.Kill(nil, "t1"); !killed || err != nil {
		t.Fatalf("%v, %v", killed, err)
	}
	if i, err := w.tasks.Wait(t.Context(), nil, "t1"); err != nil || i.Status != Killed || i.Detail != "killed" {
		t.Errorf("%+v, %v", i, err)
	}
}

// TestWaitOutput: a wait ends with what was written and not read, with the end, or
// with its context.
func TestWaitOutput(t *testing.T) {
	w := newWorld(t)
	scope := tool.NewScope("a", nil)
	c, _ := w.owner(scope)
	n := newWork()
	told := false
	i := w.start(c, n, func(Info) { told = true })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.tasks.WaitOutput(ctx, scope, i.ID); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, _ = n.out.Write([]byte("a\xe2\x82"))
	if err := w.tasks.WaitOutput(t.Context(), scope, i.ID); err != nil {
		t.Error(err)
	}
	if o, err := w.tasks.Output(scope, i.ID); err != nil || o.Text != "a" {
		t.Errorf("%+v, %v", o, err)
	}
	// The beginning of a character is nothing to read.
	if err := w.tasks.WaitOutput(ctx, scope, i.ID); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waited := make(chan error)
	go func() { waited <- w.tasks.WaitOutput(t.Context(), scope, i.ID) }()
	_, _ = n.out.Write([]byte("\xac"))
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if o, err := w.tasks.Output(scope, i.ID); err != nil || o.Text != "€" {
		t.Errorf("%+v, %v", o, err)
	}
	go func() { waited <- w.tasks.WaitOutput(t.Context(), scope, i.ID) }()
	n.finish(Completed, "")
	if err := <-waited; err != nil || !told {
		t.Errorf("%v, told %v", err, told)
	}
	if err := w.tasks.WaitOutput(t.Context(), scope, "t9"); err == nil {
		t.Error("waited for a task that there is not")
	}
}

func TestScopesAreApart(t *testing.T) {
	w := newWorld(t)
	above := tool.NewScope("above", nil)
	a, _ := w.owner(tool.NewScope("a", above))
	b, _ := w.owner(tool.NewScope("b", above))
	w.start(a, newWork(), nil)
	w.start(a, newWork(), nil)
	w.start(b, newWork(), nil)
	for name, c := range map[string]struct {
		scope *tool.Scope
		want  string
	}{
		"a": {tool.ScopeOf(a), "t1 running, t2 running"}, "b": {tool.ScopeOf(b), "t1 running"},
		"above": {above, ""}, "global": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ids(w.tasks.List(c.scope)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	_, err := w.tasks.Kill(tool.ScopeOf(b), "t2")
	if msg := wantCode(t, err, CodeUnknown); !strings.Contains(msg, "there are t1 ") {
		t.Error(msg)
	}
	_, err = w.tasks.Output(above, "t1")
	wantCode(t, err, CodeUnknown)
	_, err = w.tasks.Wait(t.Context(), nil, "t1")
	wantCode(t, err, CodeUnknown)
}

func TestPluginsSeeTheirOwnScope(t *testing.T) {
	w := newWorld(t)
	s := tool.NewScope("s", nil)
	c, _ := w.owner(s)
	n := newWork()
	w.start(c, n, nil)
	_, _ = io.WriteString(n.out, "for all")
	decl, _ := cordis.LookupService("tasks")
	bind := func(s *tool.Scope) ForPlugins {
		c, _ := w.owner(s)
		return decl.Bind(w.tasks, c).(ForPlugins)
	}
	mine, other, foreign := bind(s), bind(s), bind(tool.NewScope("x", nil))
	if len(foreign.List()) != 0 {
		t.Error("a foreign plugin sees the task")
	}
	_, err := foreign.Kill("t1")
	wantCode(t, err, CodeUnknown)
	for name, read := range map[string]func() (Output, error){
		"a-plugin": func() (Output, error) { return mine.Output("t1") },
		"another":  func() (Output, error) { return other.Output("t1") },
		"program":  func() (Output, error) { return w.tasks.Output(s, "t1") },
	} {
		if o, err := read(); err != nil || o.Text != "for all" {
			t.Errorf("%s reads %q, %v", name, o.Text, err)
		}
		if o, _ := read(); o.Text != "" {
			t.Errorf("%s reads %q again", name, o.Text)
		}
	}
	if killed, err := mine.Kill("t1"); !killed || err != nil {
		t.Errorf("%v, %v", killed, err)
	}
}

// TestOwnersEnd: the tasks of an owner end with it, and nobody is told; those of
// another in the same scope go on, and ids go on too.
func TestOwnersEnd(t *testing.T) {
	w := newWorld(t)
	s := tool.NewScope("s", nil)
	a, fiber := w.owner(s)
	b, other := w.owner(s)
	told := func(i Info) { t.Errorf("told of %+v", i) }
	works := []*work{newWork(), newWork()}
	for _, n := range works {
		w.start(a, n, told)
	}
	w.start(b, newWork(), nil)
	dispose(t, fiber)
	if got := ids(w.tasks.List(s)); got != "t3 running" {
		t.Errorf("left: %q", got)
	}
	if _, err := w.tasks.Start(a, Task{Kind: "test", Begin: func(io.Writer) (Work, error) { t.Error("begun"); return newWork(), nil }}); err == nil {
		t.Error("an ended owner started a task")
	}
	if i := w.start(b, newWork(), nil); i.ID != "t4" {
		t.Errorf("the next is %s", i.ID)
	}
	dispose(t, other)
	w.tasks.mu.Lock()
	defer w.tasks.mu.Unlock()
	if len(w.tasks.scopes) != 0 || len(w.tasks.owners) != 0 || w.tasks.running != 0 {
		t.Errorf("left: %+v", w.tasks)
	}
}

// TestAllAreToldAtOnce: the unload does not end one task after the other.
func TestAllAreToldAtOnce(t *testing.T) {
	w := newWorld(t)
	c, fiber := w.owner(nil)
	var all sync.WaitGroup
	all.Add(3)
	for range 3 {
		n := &work{end: make(chan Ending, 1), deaf: true, onKill: all.Done}
		w.start(c, n, nil)
		go func() { // ends only when the others are told too
			all.Wait()
			n.finish(Killed, "")
		}()
	}
	dispose(t, fiber)
}

func TestServiceEnds(t *testing.T) {
	w := newWorld(t)
	var own *cordis.Context
	w.mount(w.root, &cordis.Plugin{Name: "no-dependent", Apply: func(c *cordis.Context, _ any) error { own = c; return nil }})
	n := newWork()
	w.start(own, n, func(Info) { t.Error("told") })
	dispose(t, w.fiber)
	if i := w.tasks.List(nil)[0]; i.Status != Killed {
		t.Errorf("%+v", i)
	}
	_, err := w.tasks.Start(own, Task{Kind: "test", Begin: func(io.Writer) (Work, error) { return newWork(), nil }})
	wantCode(t, err, CodeClosed)
}

// TestDeafWork: what does not end when it is told to is left, and said.
func TestDeafWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, root: cordis.New(cordis.WithDrainLimit(time.Hour))}
		w.mount(w.root, Plugin())
		w.tasks, _ = Service.Get(w.root)
		c, fiber := w.owner(nil)
		w.start(c, &work{end: make(chan Ending), deaf: true}, nil)
		begun := time.Now()
		r, err := fiber.Dispose(context.Background())
		if err == nil {
			err = r.Err
		}
		if err == nil || !strings.Contains(err.Error(), "t1 did not end within") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took != limits.TaskEnd {
			t.Errorf("it took %s", took)
		}
		dispose(t, w.root.Fiber())
	})
}

func TestBounds(t *testing.T) {
	w := newWorld(t)
	c, _ := w.owner(nil)
	var works []*work
	for range limits.TasksRunning {
		n := newWork()
		works = append(works, n)
		w.start(c, n, nil)
	}
	_, err := w.tasks.Start(c, Task{Kind: "test", Begin: func(io.Writer) (Work, error) { t.Error("begun"); return newWork(), nil }})
	if msg := wantCode(t, err, CodeTooMany); !strings.Contains(msg, "t1, t2, ") {
		t.Error(msg)
	}
	works[0].finish(Completed, "")
	if _, err := w.tasks.Wait(t.Context(), nil, "t1"); err != nil {
		t.Fatal(err)
	}
	for n := limits.TasksRunning + 1; n <= limits.TasksRunning+limits.TasksKept; n++ {
		k := newWork()
		i := w.start(c, k, nil)
		k.finish(Completed, "")
		if _, err := w.tasks.Wait(t.Context(), nil, i.ID); err != nil {
			t.Fatal(err)
		}
	}
	all := w.tasks.List(nil)
	if len(all) != limits.TasksRunning-1+limits.TasksKept || all[0].ID != "t2" {
		t.Errorf("%d remembered, the first is %s", len(all), all[0].ID)
	}
	_, err = w.tasks.Output(nil, "t1")
	wantCode(t, err, CodeUnknown)
}

func TestBadTasks(t *testing.T) {
	w := newWorld(t)
	c, _ := w.owner(nil)
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		task Task
		says string
	}{
		"no-begin":     {Task{Kind: "k"}, "start task: it needs"},
		"no-kind":      {Task{Begin: func(io.Writer) (Work, error) { return newWork(), nil }}, "start task: it needs"},
		"begin-fails":  {Task{Kind: "k", Begin: func(io.Writer) (Work, error) { return nil, boom }}, "boom"},
		"begin-panics": {Task{Kind: "k", Begin: func(io.Writer) (Work, error) { panic("ouch") }}, "panic: ouch"},
		"nothing":      {Task{Kind: "k", Begin: func(io.Writer) (Work, error) { return nil, nil }}, "nothing was begun"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := w.tasks.Start(w.root, c.task); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	if w.tasks.running != 0 || len(w.tasks.List(nil)) != 0 {
		t.Error("something is left")
	}
	i, err := w.tasks.Start(c, Task{Kind: "k", Label: "a\nb\x1b[31m" + strings.Repeat("x", 1000), Ended: func(Info) { panic("ouch") },
		Begin: func(io.Writer) (Work, error) { return panics{newWork()}, nil }})
	if err != nil || strings.ContainsAny(i.Label, "\n\x1b") || len(i.Label) > limits.TaskLabel+3 {
		t.Errorf("%+v, %v", i, err)
	}
	if i, err := w.tasks.Wait(t.Context(), nil, i.ID); err != nil || i.Status != Failed || i.Detail != "panic: wait" {
		t.Errorf("%+v, %v", i, err)
	}
}

type panics struct{ *work }

func (panics) Wait(context.Context) Ending { panic("wait") }

// TestRace: starts, looks and ends at once.
func TestRace(t *testing.T) {
	w := newWorld(t)
	s := tool.NewScope("s", nil)
	for range 20 {
		c, fiber := w.owner(s)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				n := newWork()
				i, err := w.tasks.Start(c, Task{Kind: "k", Begin: func(out io.Writer) (Work, error) {
					_, _ = io.WriteString(out, "x")
					return n, nil
				}})
				if err != nil {
					return
				}
				_, _ = w.tasks.Output(s, i.ID)
				w.tasks.List(s)
				n.finish(Completed, "")
				_, _ = w.tasks.Wait(context.Background(), s, i.ID)
			})
		}
		dispose(t, fiber)
		wg.Wait()
	}
	if n := len(w.tasks.List(s)); n != 0 {
		t.Errorf("%d are left", n)
	}
}
