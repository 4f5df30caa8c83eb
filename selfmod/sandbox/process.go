package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// Waits on the worker itself. None of them is a limit of model-written code.
const (
	startTimeout = 5 * time.Second // until Ready
	writeTimeout = 2 * time.Second // for a pipe that nobody reads
	pongTimeout  = time.Second
	quitTimeout  = 500 * time.Millisecond
	overdueAfter = time.Second // beyond vmTimeout, before the worker is probed
)

// process is one worker. Its fields below mu are guarded by it; nothing is
// called with mu held.
type process struct {
	num    uint64 // never that of another worker of this program
	cfg    Config
	cmd    *exec.Cmd
	in     *os.File // our end of the worker's standard input
	out    *os.File
	w      *wire.Writer
	hello  wire.Hello
	waited chan error    // the waiter's one report
	dead   chan struct{} // closed when all calls and VMs have been told
	tail   *tail
	// telling counts the hosts that are being told of a death. It grows before
	// dead is closed only.
	telling sync.WaitGroup

	mu     sync.Mutex
	nextID uint64
	calls  map[uint64]*call
	chains map[uint64][]*call
	vms    map[uint32]*VM
	pongs  map[uint64]chan struct{}
	cause  *Error // why it ends; set once
	guilty uint32 // the mount to blame; 0: none
	ended  bool
}

var lastWorker atomic.Uint64

// start runs a worker and waits for its handshake.
func start(ctx context.Context, cfg Config) (*process, error) {
	exe := cfg.Exe
	if exe == "" {
		exe = selfExe
	}
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the worker's executable: %w", err)
		}
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		_ = childIn.Close()
		_ = in.Close()
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	p := &process{
		num: lastWorker.Add(1), cfg: cfg, in: in, out: out, waited: make(chan error, 1), dead: make(chan struct{}),
		w:     wire.NewWriter(deadlineWriter{in}),
		tail:  &tail{out: cfg.Stderr},
		calls: map[uint64]*call{}, chains: map[uint64][]*call{}, vms: map[uint32]*VM{}, pongs: map[uint64]chan struct{}{},
	}
	args := append(append([]string{}, cfg.Args...), "--memory-mb", strconv.Itoa(cfg.WorkerMemoryMB))
	p.cmd = exec.Command(exe, args...)
	p.cmd.Env = []string{} // empty, not inherited
	p.cmd.Dir = string(os.PathSeparator)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, p.tail
	p.cmd.WaitDelay = quitTimeout
	p.cmd.SysProcAttr = sysProcAttr()
	started := make(chan error, 1)
	go p.wait(started)
	err = <-started
	_ = childIn.Close()
	_ = childOut.Close()
	if err != nil {
		_ = in.Close()
		_ = out.Close()
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	ready := make(chan error, 1)
	go p.read(ready)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = fmt.Errorf("no handshake: %w", ctx.Err())
	}
	if err != nil {
		p.kill(&Error{Code: CodeDied, Cause: err.Error()}, 0)
		<-p.dead
		if errors.Is(err, errRefused) {
			return nil, fmt.Errorf("start the worker: %w", err)
		}
		return nil, &Error{Code: CodeDied, Cause: "while it started: " + err.Error(), Worker: p.num}
	}
	return p, nil
}

// errRefused marks a worker that will never do.
var errRefused = errors.New("refuse the worker")

// wait starts the process and waits for its end on a thread of its own: the
// worker is bound to the death of the thread that started it.
func (p *process) wait(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.waited <- p.cmd.Wait()
}

// read is the reader's life: the handshake, then frames until the end.
func (p *process) read(ready chan<- error) {
	r := wire.NewReader(p.out)
	err := p.handshake(r)
	ready <- err
	for err == nil {
		var f wire.Frame
		if f, err = r.Read(); err == nil {
			err = p.handle(f)
		}
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: CodeDied}
		if !errors.Is(err, io.EOF) {
			e.Cause = err.Error()
		}
	}
	p.kill(e, 0)
	p.finish(<-p.waited)
}

func (p *process) handshake(r *wire.Reader) error {
	f, err := r.Read()
	if err != nil {
		return fmt.Errorf("read the handshake: %w", err)
	}
	if f.Kind != wire.Ready {
		return fmt.Errorf("read the handshake: frame of kind %d", f.Kind)
	}
	if err := json.Unmarshal(f.Payload, &p.hello); err != nil {
		return fmt.Errorf("read the handshake: %w", err)
	}
	if p.hello.Protocol != wire.Protocol || p.hello.Prelude != prelude.Hash() {
		return fmt.Errorf("refuse the worker: it speaks protocol %d with prelude %.8q, this program %d with %.8q; the executable was replaced, restart dsh",
			p.hello.Protocol, p.hello.Prelude, wire.Protocol, prelude.Hash())
	}
	return nil
}

// kill ends the process for the reason of the first caller. It does not wait.
func (p *process) kill(cause *Error, guilty uint32) {
	p.mu.Lock()
	first := p.cause == nil
	if first {
		p.cause, p.guilty = cause, guilty
	}
	p.mu.Unlock()
	if first {
		_ = p.cmd.Process.Kill() // an error means that it has ended already
		_ = p.in.Close()
	}
}

// finish tells everybody, once, when the process has been waited for.
func (p *process) finish(state error) {
	_ = p.out.Close()
	p.mu.Lock()
	p.ended = true
	cause, guilty := p.cause, p.guilty
	if cause.Cause == "" && cause.Code == CodeDied {
		cause = &Error{Code: CodeDied, Cause: p.describe(state)}
		p.cause = cause
		guilty = p.suspectLocked(exitStatus(state))
	}
	calls, vms := p.calls, p.vms
	p.calls, p.chains, p.vms = map[uint64]*call{}, map[uint64][]*call{}, map[uint32]*VM{}
	p.mu.Unlock()
	for _, c := range calls {
		c.answer(outcome{err: p.deathOf(c.vm, c.what(), cause, guilty)})
	}
	for num, vm := range vms {
		vm.die(p.deathOf(vm, "", cause, guilty), num == guilty)
	}
	close(p.dead)
}

// deathOf is the error of one mount when its worker ends.
func (p *process) deathOf(vm *VM, entry string, cause *Error, guilty uint32) *Error {
	if vm.num == guilty && cause.Code != CodeDied {
		e := *cause
		e.Worker, e.Blamed = p.num, true
		if entry != "" {
			e.Entry = entry
		}
		return &e
	}
	text := cause.Cause
	if cause.Code == CodeStuck {
		text = cause.stuck()
	}
	if vm.num == guilty {
		text += "; this mount is to blame: it was at work in it, and nothing else was that could have done it"
	}
	return &Error{Code: CodeDied, Mount: vm.name(), Entry: entry, Cause: text, Worker: p.num, Blamed: vm.num == guilty}
}

func (p *process) describe(state error) string {
	if line := p.tail.fatal(); line != "" {
		return line
	}
	if state == nil {
		return "it exited"
	}
	return state.Error()
}

// probe asks for a sign of life and ends a worker that gives none.
func (p *process) probe() {
	ch := make(chan struct{})
	p.mu.Lock()
	p.nextID++
	id := p.nextID
	p.pongs[id] = ch
	p.mu.Unlock()
	timer := time.NewTimer(pongTimeout)
	defer timer.Stop()
	if err := p.w.Write(wire.Frame{Kind: wire.Ping, ID: id}); err == nil {
		select {
		case <-ch:
			return
		case <-p.dead:
			return
		case <-timer.C:
		}
	}
	p.kill(&Error{Code: CodeDied, Cause: "it gave no sign of life for " + Millis(pongTimeout)}, 0)
}

// quit ends the worker and waits until everybody has been told.
func (p *process) quit() {
	_ = p.w.Write(wire.Frame{Kind: wire.Quit}) // a worker that is gone has quit
	timer := time.NewTimer(quitTimeout)
	defer timer.Stop()
	select {
	case <-p.dead:
	case <-timer.C:
		p.kill(&Error{Code: CodeClosed}, 0)
		<-p.dead
	}
	p.telling.Wait()
}

// deadlineWriter bounds each write: a stopped worker does not read its pipe.
type deadlineWriter struct{ f *os.File }

func (d deadlineWriter) Write(b []byte) (int, error) {
	_ = d.f.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it is not supported, the probe finds out
	return d.f.Write(b)
}
