package bash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
)

// leavers are command lines whose descendants leave the process group, the
// session, or their parents. Each holds $F open, says so, and does not end.
var leavers = map[string]string{
	"background":    `exec 9>$F; sleep 1000 >/dev/null 2>&1 & echo up >&9; `,
	"setsid":        `exec 9>$F; setsid sh -c 'echo up >&9; sleep 1000' >/dev/null 2>&1 & `,
	"daemon":        `exec 9>$F; (setsid sh -c '(setsid sh -c "echo up >&9; sleep 1000" &)' &) >/dev/null 2>&1; `,
	"ignoring":      `exec 9>$F; setsid sh -c 'trap "" TERM HUP INT; echo up >&9; while :; do sleep 1000; done' & `,
	"stopped":       `exec 9>$F; setsid sh -c 'echo up >&9; kill -STOP $$; sleep 1000' & `,
	"pipe_in_group": `exec 9>$F; (trap "" TERM; echo up >&9; sleep 1000) & `,
	// Successors that are never the process that one has just seen.
	"relay": `exec 9>$F; export S='trap "" TERM; sleep 0.01; setsid bash -c "$S" & exit'; for i in 1 2; do setsid bash -c "$S" & done; echo up >&9; `,
	// Twice as many every 100 ms; they stop at 64, for the machine's sake.
	"bomb":          `exec 9>$F; b() { sleep 0.1; test $1 -gt 0 || sleep 1000; b $(($1-1)) & b $(($1-1)) & wait; }; trap "" TERM; echo up >&9; b 6 & `,
	"bomb_sessions": `exec 9>$F; export S='trap "" TERM; sleep 0.1; test $N -gt 0 || sleep 1000; N=$((N-1)); setsid bash -c "$S" & setsid bash -c "$S" & wait'; N=5 setsid bash -c "$S" & echo up >&9; `,
}

func leaver(name string, f *fifo, then string) bash.Command {
	c := line(leavers[name] + then)
	c.Env = map[string]string{"F": f.path}
	return c
}

func TestNothingIsLeftWhenTheShellEnds(t *testing.T) {
	for name := range leavers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, bash.Config{})
			f := newFifo(t)
			got := r.run(leaver(name, f, "read x < $F; exit 3"))
			exitCode(t, got, 3)
			f.closed(t)
		})
	}
}

func TestNothingIsLeftAfterATimeout(t *testing.T) {
	for name := range leavers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, bash.Config{})
			f := newFifo(t)
			c := leaver(name, f, "sleep 1000")
			c.TimeoutMs = 200
			if got := r.run(c); !got.TimedOut {
				t.Errorf("%+v", got)
			}
			f.closed(t)
		})
	}
}

// A command that kills its supervisor is an error, and takes its group with it,
// however early it does.
func TestSupervisorKilled(t *testing.T) {
	for _, name := range []string{"at_once", "later"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, bash.Config{})
			use, _ := r.plugin("dyn-1")
			f := newFifo(t)
			c := line("kill -9 $PPID; sleep 1000")
			if name == "later" {
				c = leaver("background", f, c.Command)
			}
			_, err := use.Run(within(t, time.Minute), c, nil)
			wantCode(t, err, bash.CodeFailed)
			if !strings.Contains(err.Error(), "its result is not known") {
				t.Error(err) // not that it did not begin
			}
			if name == "later" {
				f.gone(t)
			}
		})
	}
}

// One that only stops it does not escape its limits, however early it does and
// how often.
func TestSupervisorStopped(t *testing.T) {
	for name, c := range map[string]struct {
		command, ends string
	}{
		"at_once": {"kill -STOP $PPID; sleep 1000", "SIGTERM"},
		"later":   {leavers["background"] + "kill -STOP $PPID; sleep 1000", "SIGTERM"},
		"always":  {leavers["background"] + `trap "" TERM; while :; do kill -STOP $PPID; done`, "SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, bash.Config{})
			f := newFifo(t)
			command := line(c.command)
			command.Env = map[string]string{"F": f.path}
			command.TimeoutMs = 100
			began := time.Now()
			got := r.run(command)
			signaled(t, got, c.ends)
			if took := time.Since(began); !got.TimedOut || took > abandonedSoon {
				t.Errorf("after %v: %+v", took, got)
			}
			if name != "at_once" {
				f.gone(t)
			}
		})
	}
}

// abandonedSoon is far less than what a supervisor is given that is at work.
const abandonedSoon = 30 * time.Second

func TestNoDescriptorsReachTheCommand(t *testing.T) {
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil { // not close-on-exec
		t.Fatal(err)
	}
	defer func() { _, _ = syscall.Close(fds[0]), syscall.Close(fds[1]) }()
	r := newRig(t, bash.Config{})
	if got := r.run(line("ls /proc/self/fd | wc -w")); strings.TrimSpace(got.Stdout.Text) != "4" { // 0, 1, 2, and that of ls
		t.Errorf("%s descriptors", got.Stdout.Text)
	}
}

func TestNotASupervisor(t *testing.T) {
	r := newRig(t, bash.Config{Program: "/bin/true"})
	use, _ := r.plugin("dyn-1")
	_, err := use.Run(within(t, time.Minute), line("echo ran"), nil)
	wantCode(t, err, bash.CodeFailed)
}

// Fifty plugins run commands when the runtime is told to stop.
func TestFiftyPluginsStop(t *testing.T) {
	r := newRig(t, bash.Config{})
	names := []string{"background", "setsid", "daemon", "stopped"}
	fifos := make([]*fifo, 50)
	var callers sync.WaitGroup
	for i := range fifos {
		f := newFifo(t)
		fifos[i] = f
		use, _ := r.plugin(fmt.Sprintf("dyn-%d", i))
		c := leaver(names[i%len(names)], f, "sleep 1000")
		callers.Go(func() {
			got, err := use.Run(context.Background(), c, nil)
			if err == nil && !got.Aborted {
				t.Errorf("%+v", got)
			}
		})
		if i%2 == 0 {
			must(use.Start(within(t, time.Minute), c, nil))(t)
		}
	}
	for _, f := range fifos {
		f.await(t)
	}
	began := time.Now()
	// What runs for nobody's call is stopped by the unload; a call has to be told.
	dispose(t, r.root.Fiber())
	if took := time.Since(began); took > limits.BashKillAfter {
		t.Errorf("took %v", took)
	}
	callers.Wait()
	for _, f := range fifos {
		f.closed(t)
	}
}

// What ignores SIGTERM is killed soon where nobody waits for it, told to stop before
// or not.
func TestNobodyWaits(t *testing.T) {
	for _, how := range []string{"unloaded", "stopped_before", "by_group"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, bash.Config{NoSupervisor: how == "by_group"})
			use, fiber := r.plugin("dyn-1")
			f := newFifo(t)
			c := line(`exec 9>$F; trap "" TERM; echo up >&9; while :; do sleep 1000; done`)
			c.Env = map[string]string{"F": f.path}
			p := must(use.Start(within(t, time.Minute), c, nil))(t)
			f.await(t)
			if how != "unloaded" {
				if _, err := p.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			dispose(t, fiber)
			if took := time.Since(began); took > limits.Shutdown {
				t.Errorf("took %v", took)
			}
			f.closed(t)
		})
	}
}

// hostCommand makes this test binary a program that runs commands.
const hostCommand = "test-host"

// runHost runs commands until it is killed, or ends in order at the end of its
// standard input.
func runHost(args []string) {
	var commands []bash.Command
	if err := json.Unmarshal([]byte(args[0]), &commands); err != nil {
		panic(err)
	}
	root := cordis.New()
	f, err := root.Mount(bash.Plugin(bash.Config{}), nil)
	if err == nil {
		err = f.Await(context.Background())
	}
	if err != nil {
		panic(err)
	}
	b, err := bash.Service.Use(root)
	if err != nil {
		panic(err)
	}
	for _, c := range commands {
		go func() { _, _ = b.Run(context.Background(), root, c) }()
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, _ = root.Fiber().Dispose(ctx)
	fmt.Println("ended")
}

// However the program ends, nothing of its commands is left.
func TestProgramEnds(t *testing.T) {
	for _, how := range []string{"killed", "told"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var fifos []*fifo
			var commands []bash.Command
			for name := range leavers {
				f := newFifo(t)
				fifos = append(fifos, f)
				commands = append(commands, leaver(name, f, "sleep 1000"))
			}
			args, err := json.Marshal(commands)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe", hostCommand, string(args))
			cmd.Stderr = os.Stderr
			in := must(cmd.StdinPipe())(t)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for _, f := range fifos {
				f.await(t)
			}
			if how == "killed" {
				_ = cmd.Process.Kill()
			}
			_ = in.Close()
			_ = cmd.Wait()
			for _, f := range fifos {
				f.gone(t)
			}
		})
	}
}

// The death of the thread that started a supervisor is not that of the program.
func TestThreadThatStartedItEnds(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	f, goOn := newFifo(t), newFifo(t)
	started := make(chan bash.Process, 1)
	thread := make(chan int, 1) // watches it
	mortal(func() {
		p, err := use.Start(context.Background(), line("echo up > "+f.path+"; read x <> "+goOn.path+"; exit 5"), nil)
		if err != nil {
			t.Error(err)
		}
		fd, err := unix.PidfdOpen(unix.Gettid(), unix.PIDFD_THREAD)
		if err != nil {
			t.Log(err) // before Linux 6.9
			fd = -1
		}
		thread <- fd
		started <- p
	})
	fd, p := <-thread, <-started
	if p == nil || fd < 0 {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000); n != 1 || err != nil {
		t.Errorf("the thread lives on: %v", err)
	}
	f.await(t)
	goOn.send(t)
	exitCode(t, await(t, p), 5)
}

// mortal runs do on a thread that ends with it, which the first one does not.
func mortal(do func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			do()
			return
		}
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		mortal(func() { defer close(done); do() })
		<-done
	}()
}

// Small runs, one after the other and at the same time, leave nothing behind.
func TestManyRunsDoNotGrow(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, f := r.plugin("dyn-1")
	many := func(n int) {
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for range n / 4 {
					got, err := use.Run(context.Background(), line("echo hello"), nil)
					if err != nil || got.Stdout.Text != "hello\n" {
						t.Errorf("%+v %v", got, err)
						return
					}
				}
			})
		}
		callers.Wait()
	}
	state := func() (s [4]int) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return [4]int{len(fds), runtime.NumGoroutine(), len(f.Effects()), int(m.HeapAlloc)}
	}
	many(100)
	before := state()
	began := time.Now()
	many(runs)
	after := state()
	t.Logf("%d runs in %v; descriptors, goroutines, effects, heap: %v, then %v", runs, time.Since(began), before, after)
	if after[0] > before[0]+2 || after[1] > before[1]+2 || after[2] != before[2] || after[3] > before[3]+256<<10 {
		t.Errorf("descriptors, goroutines, effects, heap: %v, then %v", before, after)
	}
}
