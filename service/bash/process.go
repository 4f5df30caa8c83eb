package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

// cause is why a command was stopped.
type cause int

const (
	none cause = iota
	timedOut
	aborted
)

// process is one command from its admission to its end.
type process struct {
	local  *Local
	fiber  *cordis.Fiber
	spec   Spec
	handle *cordis.Handle // set before it starts
	news   *news          // nil: of run
	out    *stream
	err2   *stream // stderr

	mu    sync.Mutex
	why   cause
	lost  bool  // nobody waits for it
	child child // nil until it has started
	limit *time.Timer

	done   chan struct{} // closed at the end; guards the two below
	result RunResult
	err    error // the machine failed, not the command
}

var _ Process = (*process)(nil)

// child is the running shell, with what it starts.
type child interface {
	// stop has it get SIGTERM, and SIGKILL later. It does not block.
	stop()
	// hurry is stop with SIGKILL soon after, also when stop was called before.
	hurry()
	// wait waits for the end of the shell; on Linux for that of all that it left, too.
	wait() (ending, error)
	// finish kills what is left.
	finish()
}

// ending is how the shell ended.
type ending struct {
	code   int
	signal string // empty: it exited with code
	left   int    // processes that could not be killed
}

func newProcess(l *Local, f *cordis.Fiber, s Spec, background bool) *process {
	p := &process{local: l, fiber: f, spec: s, done: make(chan struct{})}
	if background {
		p.news = &news{}
	}
	p.out = &stream{max: s.StdoutMaxBytes, news: p.news, open: func() (*os.File, error) { return l.file(p, "stdout") }}
	p.err2 = &stream{max: limits.BashOutput, news: p.news, open: func() (*os.File, error) { return l.file(p, "stderr") }}
	return p
}

// pipes are our ends of the streams, and the command's.
type pipes struct {
	stdin, stdout, stderr *os.File
	theirs                [3]*os.File
}

// start starts the shell. After an error nothing is left.
func (p *process) start(shell string) error {
	ours, err := p.pipe()
	if err != nil {
		return fail(CodeFailed, "the command could not be started: %v", reason(err))
	}
	env := environment(os.Environ(), p.local.cfg.PassEnv, p.spec.Workdir, p.spec.Env)
	ch, err := startChild(p.local.cfg, shell, p.spec, env, ours.theirs)
	for _, f := range ours.theirs {
		_ = f.Close()
	}
	if err != nil {
		ours.close()
		return startError(err)
	}
	p.mu.Lock()
	p.child = ch
	if p.lost {
		ch.hurry()
	} else if p.why != none { // stopped meanwhile
		ch.stop()
	} else if p.spec.TimeoutMs > 0 {
		p.limit = time.AfterFunc(time.Duration(p.spec.TimeoutMs)*time.Millisecond, func() { p.stop(timedOut) })
	}
	p.mu.Unlock()
	go p.live(ours)
	return nil
}

// startError tells what the machine lacks.
func startError(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fail(CodeBadWorkdir, "the command could not be started: permission denied; is the workdir a folder that may be entered?")
	}
	return fail(CodeFailed, "the command could not be started: %v", reason(err))
}

// pipe makes the streams.
func (p *process) pipe() (s pipes, err error) {
	defer func() {
		if err != nil {
			s.close()
			for _, f := range s.theirs {
				_ = f.Close() // nil is harmless
			}
		}
	}()
	if p.spec.Stdin == "" {
		s.theirs[0], err = os.Open(os.DevNull)
	} else {
		s.theirs[0], s.stdin, err = os.Pipe()
	}
	if err != nil {
		return s, err
	}
	if s.stdout, s.theirs[1], err = os.Pipe(); err != nil {
		return s, err
	}
	s.stderr, s.theirs[2], err = os.Pipe()
	return s, err
}

func (s *pipes) close() {
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		_ = f.Close() // nil is harmless; what waits on it returns
	}
}

// live is the life of the command.
func (p *process) live(ours pipes) {
	var writing, reading sync.WaitGroup
	if ours.stdin != nil {
		writing.Go(func() {
			_, _ = ours.stdin.WriteString(p.spec.Stdin) // a command need not read it
			_ = ours.stdin.Close()
		})
	}
	reading.Go(func() { p.out.fill(ours.stdout) })
	reading.Go(func() { p.err2.fill(ours.stderr) })
	all := make(chan struct{})
	go func() { reading.Wait(); close(all) }()

	end, err := p.child.wait()
	if !within(all, limits.BashLinger) {
		p.child.finish()
		within(all, limits.BashLost)
	}
	p.child.finish()
	ours.close()
	<-all
	writing.Wait()
	p.conclude(end, err)
}

// within tells whether done is closed in time.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// conclude tells everybody what became of the command.
func (p *process) conclude(end ending, err error) {
	p.mu.Lock()
	if p.limit != nil {
		p.limit.Stop()
	}
	why := p.why
	p.mu.Unlock()
	if end.left > 0 {
		p.local.c.Logger("bash").Warn("processes of a command could not be killed", "count", end.left)
	}
	r := RunResult{
		TimedOut: why == timedOut, Aborted: why == aborted, TimeoutMs: p.spec.TimeoutMs,
		Stdout: p.out.close(), Stderr: p.err2.close(),
	}
	if p.spec.Shell != "bash" {
		r.Shell = p.spec.Shell
	}
	switch {
	case err != nil && why == none:
		p.err = err
	case err != nil: // it took its supervisor with it
		end.signal = "SIGKILL"
		fallthrough
	case end.signal != "":
		r.Signal = &end.signal
	default:
		r.ExitCode = &end.code
	}
	p.result = r
	p.local.leave(p)
	if p.news != nil {
		p.forget()
	}
}

// forget ends the effect of an ended process.
func (p *process) forget() {
	_ = p.handle.Dispose(context.Background()) // dispose gives no error
}

// dispose is the end of the effect.
func (p *process) dispose(context.Context) error {
	p.abandon()
	<-p.done // within its own bounds
	return nil
}

// stop stops a running command for the reason of the first caller. It tells
// whether that was this one.
func (p *process) stop(why cause) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != none || p.ended() {
		return false
	}
	p.why = why
	if p.child != nil {
		p.child.stop()
	}
	return true
}

// abandon stops a running command for which nobody waits any more.
func (p *process) abandon() {
	p.stop(aborted)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
	if p.child != nil && !p.ended() {
		p.child.hurry()
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Status implements [Process].
func (p *process) Status() ProcessStatus {
	switch {
	case !p.ended():
		return Running
	case p.result.TimedOut, p.result.Aborted, p.result.Signal != nil, p.err != nil:
		return Killed
	}
	return Completed
}

// ExitCode implements [Process].
func (p *process) ExitCode() *int {
	if !p.ended() {
		return nil
	}
	return p.result.ExitCode
}

// Signal implements [Process].
func (p *process) Signal() *string {
	if !p.ended() {
		return nil
	}
	return p.result.Signal
}

// Done implements [Process].
func (p *process) Done() service.Promise[RunResult] {
	return func(ctx context.Context) (RunResult, error) {
		select {
		case <-p.done:
			return p.result, p.err
		case <-ctx.Done():
			return RunResult{}, fmt.Errorf("wait for a command: %w", context.Cause(ctx))
		}
	}
}

// ReadOutput implements [Process].
func (p *process) ReadOutput() (Output, error) {
	var o Output
	o.Delta, o.Lossy = p.news.take()
	o.StdoutSpillPath, o.StderrSpillPath = p.out.spillPath(), p.err2.spillPath()
	return o, nil
}

// Kill implements [Process].
func (p *process) Kill() (bool, error) { return p.stop(aborted), nil }
