package worker

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

//go:embed testdata/prelude.js
var stubPrelude string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__worker" {
		os.Exit(testWorker(os.Args[2:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if fastFolder != "" {
			_ = os.RemoveAll(fastFolder)
		}
		os.Exit(code)
	}))
}

// asUser makes a process run as somebody else, where that is possible.
var asUser = func(t testing.TB, uid int) *syscall.SysProcAttr {
	t.Skip("not on this system")
	return nil
}

// probeLock is the worker that tries what the lock denies, where there is a lock.
var probeLock = func() int { return 1 }

// testWorker is what this test's executable does as a worker process.
func testWorker(args []string) int {
	if len(args) > 0 && args[0] == "probe" {
		return probeLock()
	}
	return run(args, stubPrelude, "stub")
}

// wait is how long a test waits for what must come.
const wait = 20 * time.Second

// host is the other side of a worker, as a test plays it.
type host struct {
	t     testing.TB
	in    io.Writer // below w
	w     *wire.Writer
	hello wire.Hello

	mu      sync.Mutex
	last    uint64
	results map[uint64]chan wire.Frame
	late    []wire.Frame
	console []wire.Frame
	sends   []wire.Frame
	stuck   chan wire.Frame
	lates   chan wire.Frame
	// sync and async answer what VMs ask; nil: the value that was asked with.
	sync, async func(h *host, f wire.Frame)
	ended       chan struct{} // the frames have ended
	worker      *worker       // in this process
	cmd         *exec.Cmd     // or another one
	stderr      *bytes.Buffer
}

func newHost(t testing.TB, in io.Writer, out io.Reader) *host {
	h := &host{
		t: t, in: in, w: wire.NewWriter(in), results: map[uint64]chan wire.Frame{},
		stuck: make(chan wire.Frame, 100), lates: make(chan wire.Frame, 10_000), ended: make(chan struct{}),
	}
	r := wire.NewReader(out)
	f, err := r.Read()
	if err != nil || f.Kind != wire.Ready {
		t.Fatalf("first frame: %+v, %v", f, err)
	}
	if err := json.Unmarshal(f.Payload, &h.hello); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(h.ended)
		for {
			f, err := r.Read()
			if err != nil {
				return
			}
			h.frame(f)
		}
	}()
	return h
}

func (h *host) frame(f wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch f.Kind {
	case wire.Result, wire.Pong:
		ch := h.results[f.ID]
		if ch == nil && f.ID == 0 { // of a frame that the test wrote itself
			return
		}
		if ch == nil {
			h.t.Errorf("a result for call %d, which nobody waits for", f.ID)
			return
		}
		delete(h.results, f.ID)
		ch <- f
	case wire.HostSync, wire.HostAsync:
		answer := h.sync
		if f.Kind == wire.HostAsync {
			answer = h.async
		}
		if answer == nil {
			answer = echo
		}
		go answer(h, f)
	case wire.Late:
		h.late = append(h.late, f)
		h.lates <- f
	case wire.Console:
		h.console = append(h.console, f)
	case wire.Send:
		h.sends = append(h.sends, f)
	case wire.Stuck:
		h.stuck <- f
	}
}

// echo answers with what was asked.
func echo(h *host, f wire.Frame) { h.reply(f, wire.Ok(f.Payload)) }

// reply answers a HostSync or HostAsync.
func (h *host) reply(f wire.Frame, value []byte) {
	kind := wire.Reply
	if f.Kind == wire.HostAsync {
		kind = wire.Settle
	}
	_ = h.w.Write(wire.Frame{Kind: kind, ID: f.ID, Mount: f.Mount, Payload: value})
}

// send sends a frame with a new id and returns where its result comes.
func (h *host) send(f wire.Frame) (uint64, <-chan wire.Frame) {
	h.t.Helper()
	ch := make(chan wire.Frame, 1)
	h.mu.Lock()
	h.last++
	f.ID = h.last
	h.results[f.ID] = ch
	h.mu.Unlock()
	if f.Chain == 0 {
		f.Chain = f.ID
	}
	if err := h.w.Write(f); err != nil {
		h.t.Fatalf("write frame: %v", err)
	}
	return f.ID, ch
}

// result is a Result, read.
type result struct {
	wire.Frame
	stats wire.Stats
	value string
	fault *wire.Fault
}

func (h *host) await(ch <-chan wire.Frame) result {
	h.t.Helper()
	select {
	case f := <-ch:
		s, rest, err := wire.CutStats(f.Payload)
		if err != nil {
			h.t.Fatal(err)
		}
		value, fault, err := wire.Value(rest)
		if err != nil {
			h.t.Fatal(err)
		}
		return result{f, s, string(value), fault}
	case <-h.ended:
		h.t.Fatalf("the worker has ended: %s", h.stderr)
	case <-time.After(wait):
		h.t.Fatal("no result")
	}
	panic("unreachable")
}

func (h *host) do(f wire.Frame) result {
	h.t.Helper()
	_, ch := h.send(f)
	return h.await(ch)
}

// must is do for what must succeed; it returns the value.
func (h *host) must(f wire.Frame) string {
	h.t.Helper()
	r := h.do(f)
	if r.fault != nil {
		h.t.Fatalf("frame of kind %d failed: %+v", f.Kind, r.fault)
	}
	return r.value
}

// loadFrame asks for a mount with a limit inside the engine.
func loadFrame(mount uint32, source string, limit time.Duration) wire.Frame {
	payload := wire.AppendLoad(nil, wire.LoadRequest{
		File: fmt.Sprintf("cordis-mount-dyn-%d.js", mount), Source: source, MemoryMB: 64,
		VMTimeout: limit, ID: fmt.Sprintf("dyn-%d", mount),
	})
	return wire.Frame{Kind: wire.Load, Mount: mount, Payload: payload}
}

// mount loads and applies a body with the limit.
func (h *host) mount(mount uint32, source string, limit time.Duration) {
	h.t.Helper()
	h.must(loadFrame(mount, source, limit))
	h.must(wire.Frame{Kind: wire.Apply, Mount: mount, Run: 1, Payload: []byte("{}")})
}

func invoke(mount, fn uint32, args string) wire.Frame {
	return wire.Frame{Kind: wire.Invoke, Mount: mount, Run: 1, Name: "tool", Payload: wire.AppendInvoke(nil, fn, []byte(args))}
}

// startWorker serves in this process, over pipes, without a lock. Its input is a
// pipe of the system.
func startWorker(t testing.TB) *host {
	t.Helper()
	return startServe(t, stubPrelude, "stub")
}

// startTimed is startWorker for tests of limits, in which the engine must be as
// fast as it is: under the race detector they use a process built without it.
func startTimed(t testing.TB) *host {
	t.Helper()
	if !raceEnabled {
		return startWorker(t)
	}
	return startProcess(t, 0)
}

func startServe(t testing.TB, prelude, hash string) *host {
	t.Helper()
	return startOptions(t, Options{Prelude: prelude, PreludeHash: hash})
}

func startOptions(t testing.TB, o Options) *host {
	t.Helper()
	in, hostOut, err := os.Pipe() // as the process has it: see package relay
	if err != nil {
		t.Fatal(err)
	}
	hostIn, out := io.Pipe()
	o.In, o.Out = in, out
	if o.wait != 0 { // a bound of executors: a reader that waits relies on the host's
		o.In = struct{ io.Reader }{in}
	}
	w, err := newWorker(o)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		err := w.serveUntil(context.Background(), o)
		_ = out.Close()
		_ = in.Close()
		served <- err
	}()
	h := newHost(t, hostOut, hostIn)
	h.worker = w
	t.Cleanup(func() {
		_ = hostOut.Close()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(wait):
			t.Error("serve does not end")
		}
		<-h.ended
	})
	return h
}

// exe is the executable to run as the worker: this one, or, under the race
// detector, one built without it.
func exe(t testing.TB) string {
	t.Helper()
	if raceEnabled {
		path, err := fastExe()
		if err != nil {
			t.Skipf("the engine is too slow under the race detector, and a worker without it cannot be built: %v", err)
		}
		return path
	}
	if runtime.GOOS == "linux" {
		return "/proc/self/exe" // its folder may be closed to other users
	}
	e, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var fastFolder string

// fastExe builds this test without the race detector.
var fastExe = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "dsh-worker-test")
	if err != nil {
		return "", err
	}
	fastFolder = folder
	if err := os.Chmod(folder, 0o755); err != nil { // other users run it, too
		return "", err
	}
	path := filepath.Join(folder, "worker.test")
	cmd := exec.Command("go", "test", "-c", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// startProcess runs a worker process, as an ordinary user when uid is not 0.
func startProcess(t testing.TB, uid int) *host {
	t.Helper()
	cmd := exec.Command(exe(t), "__worker")
	cmd.Env = []string{}
	if uid != 0 {
		cmd.SysProcAttr = asUser(t, uid)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, in, out)
	h.cmd, h.stderr = cmd, &stderr
	t.Cleanup(func() {
		_ = in.Close()
		select {
		case <-h.ended:
		case <-time.After(wait):
			t.Error("the worker does not end when its input does")
		}
		_ = cmd.Process.Kill()
		<-h.ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("stderr of the worker: %s", &stderr)
		}
	})
	return h
}
