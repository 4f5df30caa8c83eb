package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// Config configures the local provider.
type Config struct {
	// Dir is the default working directory; empty: that of the program.
	Dir string
	// PassEnv names variables that commands get although they may be credentials.
	PassEnv []string
	// Program is the executable of supervisors (Linux); empty: the running one. Any
	// program that links this package is one.
	Program string
	// NoSupervisor ends only the process group of a command, as it is on other
	// systems than Linux.
	NoSupervisor bool
}

// Plugin returns the plugin that provides the service on this machine.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name:     "bash",
		Provides: []string{Service.Name()},
		Apply: func(c *cordis.Context, _ any) error {
			l, err := newLocal(c, cfg)
			if err != nil {
				return err
			}
			if _, err := c.Defer("commands", l.close); err != nil {
				return fmt.Errorf("provide bash: %w", err)
			}
			if _, err := Service.Provide(c, l); err != nil {
				return fmt.Errorf("provide bash: %w", err)
			}
			return nil
		},
	}
}

// Local runs commands on this machine.
type Local struct {
	c    *cordis.Context
	cfg  Config
	dir  string // absolute
	wait sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	folder  string // of output files; empty: none yet
	running map[*process]struct{}
	owners  map[*cordis.Fiber]*owner
}

var _ Bash = (*Local)(nil)

// owner is a fiber that has run commands. Its fields are guarded by Local.mu.
type owner struct {
	running int
	files   []*spilled // the oldest first
}

// spilled is a file with output.
type spilled struct {
	path string
	by   *process
}

func newLocal(c *cordis.Context, cfg Config) (*Local, error) {
	dir := cfg.Dir
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("start bash: find the default working directory: %w", err)
	}
	for _, name := range cfg.PassEnv {
		if name == "" || strings.ContainsAny(name, "=*\x00") {
			return nil, fmt.Errorf("start bash: pass %q to commands: give the whole name of one variable", name)
		}
	}
	return &Local{c: c, cfg: cfg, dir: dir, running: map[*process]struct{}{}, owners: map[*cordis.Fiber]*owner{}}, nil
}

// Describe says in one line where commands run and what binds them.
func (l *Local) Describe() string {
	return "commands start in " + l.dir + "; the roots of fs do not bind them"
}

// close ends everything that still runs, and removes the folder of output files.
func (l *Local) close(context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stopAll(nil)
	l.wait.Wait() // each ends within its own bounds
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == "" {
		return nil
	}
	if err := os.RemoveAll(l.folder); err != nil {
		return fmt.Errorf("remove the output of commands: %w", err)
	}
	return nil
}

// Resolve implements [Bash].
func (l *Local) Resolve(command Command) (Spec, error) {
	s, _, err := l.resolve(command, limits.BashTimeout)
	return s, err
}

// Run implements [Bash].
func (l *Local) Run(ctx context.Context, c *cordis.Context, command Command) (RunResult, error) {
	s, shell, err := l.resolve(command, limits.BashTimeout)
	if err != nil {
		return RunResult{}, err
	}
	p, err := l.begin(ctx, c, s, shell, false)
	if err != nil {
		if ctx.Err() != nil && service.CodeOf(err) == "" { // ended before it began
			return RunResult{Aborted: true, TimeoutMs: s.TimeoutMs}, nil
		}
		return RunResult{}, err
	}
	release := context.AfterFunc(ctx, func() { p.stop(aborted) })
	<-p.done
	release()
	p.forget()
	return p.result, p.err
}

// Start implements [Bash].
func (l *Local) Start(ctx context.Context, c *cordis.Context, command Command) (Process, error) {
	s, shell, err := l.resolve(command, 0)
	if err != nil {
		return nil, err
	}
	p, err := l.begin(ctx, c, s, shell, true)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// begin asks policy, starts the command, and makes it an effect of c.
func (l *Local) begin(ctx context.Context, c *cordis.Context, s Spec, shell string, background bool) (*process, error) {
	intent := Run{Command: s.Command, Workdir: s.Workdir, Background: background, Env: s.Env, Stdin: s.Stdin, Shell: s.Shell}
	if m, ok := tool.MountOf(c); ok {
		intent.By = m.ID
	}
	if err := service.Ask(ctx, l.c, RunIntent, CodeDenied, intent); err != nil {
		return nil, err
	}
	p, err := l.admit(c, s, background)
	if err != nil {
		return nil, err
	}
	p.out.hear, _ = ctx.Value(hearKey{}).(func([]byte))
	p.err2.hear = p.out.hear
	verb := "run"
	if background {
		verb = "start"
	}
	h, err := c.Defer(fmt.Sprintf("bash.%s(%q)", verb, plain.Line(s.Command, limits.Name)), p.dispose)
	if err != nil {
		l.leave(p)
		return nil, fmt.Errorf("run a command: %w", err)
	}
	p.handle = h
	if err := p.start(shell); err != nil {
		l.leave(p)
		p.forget()
		return nil, err
	}
	return p, nil
}

// admit makes a process, if one more may run.
func (l *Local) admit(c *cordis.Context, s Spec, background bool) (*process, error) {
	f := c.Fiber()
	if err := l.own(c, f); err != nil {
		return nil, fmt.Errorf("run a command: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[f]
	switch {
	case l.closed || o == nil:
		return nil, fail(CodeFailed, "bash is being taken down; no command can start any more")
	case o.running >= limits.BashRunning:
		return nil, fail(CodeTooMany, "this plugin runs %d commands already, as many as it may; await some of them, or kill() what you have started", o.running)
	case len(l.running) >= limits.BashRunningAll:
		return nil, fail(CodeTooMany, "%d commands run already, as many as all plugins together may; try again when some have ended", len(l.running))
	}
	p := newProcess(l, f, s, background)
	o.running++
	l.running[p] = struct{}{}
	l.wait.Add(1)
	return p, nil
}

// leave takes a process out that has ended, and tells so. First there is room for
// another, then it is told, then the service may end.
func (l *Local) leave(p *process) {
	l.mu.Lock()
	delete(l.running, p)
	if o := l.owners[p.fiber]; o != nil {
		o.running--
	}
	l.mu.Unlock()
	close(p.done)
	l.wait.Done()
}

// own makes the fiber an owner, until it ends.
func (l *Local) own(c *cordis.Context, f *cordis.Fiber) error {
	l.mu.Lock()
	_, known := l.owners[f]
	l.mu.Unlock()
	if known {
		return nil
	}
	_, err := c.Effect("bash output", func(s *cordis.Setup) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, known := l.owners[f]; known {
			return nil // made meanwhile
		}
		l.owners[f] = &owner{}
		s.Collect(func(context.Context) error { return l.disown(f) })
		// When all of a session ends, or of the program, its plugins are unloaded one
		// after the other; their commands are stopped at once.
		for above := f.Parent(); above != nil; above = above.Parent() {
			release := context.AfterFunc(above.Context().Context(), func() { l.stopAll(f) })
			s.Collect(func(context.Context) error { release(); return nil })
		}
		return nil
	})
	return err
}

// stopAll stops what runs for the fiber, nil: for all; nobody waits for it any more.
func (l *Local) stopAll(f *cordis.Fiber) {
	l.mu.Lock()
	var found []*process
	for p := range l.running {
		if f == nil || p.fiber == f {
			found = append(found, p)
		}
	}
	l.mu.Unlock()
	for _, p := range found {
		p.abandon()
	}
}

// disown removes what the fiber's commands have left. They have ended: their
// effects are newer.
func (l *Local) disown(f *cordis.Fiber) error {
	l.mu.Lock()
	o := l.owners[f]
	delete(l.owners, f)
	l.mu.Unlock()
	var err error
	for _, s := range o.files {
		err = errors.Join(err, remove(s.path))
	}
	return err
}

// file makes a file for the output of p, and removes the oldest of its owner if
// there are too many.
func (l *Local) file(p *process, name string) (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[p.fiber]
	if o == nil || l.closed {
		return nil, os.ErrClosed
	}
	if l.folder == "" {
		folder, err := os.MkdirTemp("", "dsh-bash-") // 0700
		if err != nil {
			return nil, fmt.Errorf("make a folder for output: %w", err)
		}
		l.folder = folder
	}
	f, err := os.CreateTemp(l.folder, name+"-*.txt") // 0600
	if err != nil {
		return nil, fmt.Errorf("make a file for output: %w", err)
	}
	if len(o.files) >= limits.BashSpillFiles {
		i := max(0, slices.IndexFunc(o.files, func(s *spilled) bool {
			_, running := l.running[s.by]
			return !running
		}))
		if err := remove(o.files[i].path); err != nil {
			l.c.Logger("bash").Warn("an old output file could not be removed", "error", err)
		}
		o.files = slices.Delete(o.files, i, i+1)
	}
	o.files = append(o.files, &spilled{f.Name(), p})
	return f, nil
}

// remove removes a file that may have gone already.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove output: %w", err)
	}
	return nil
}
