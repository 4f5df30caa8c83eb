package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/lock"
)

func init() { probeLock = probe }

// probe locks the process down and says what still works.
func probe() int {
	l := lock.Apply(256)
	works := map[string]string{"lock": fmt.Sprint(l)}
	try := func(name string, f func() error) {
		works[name] = "works"
		if err := f(); err != nil {
			works[name] = err.Error()
		}
	}
	try("open", func() error { f, err := os.Open("/etc/passwd"); _ = f.Close(); return err })
	try("create", func() error { return os.WriteFile("/tmp/dsh-lock-probe", nil, 0o600) })
	try("list", func() error { _, err := os.ReadDir("/"); return err })
	try("tcp", func() error { _, err := net.Dial("tcp", "127.0.0.1:9"); return err })
	try("udp", func() error { _, err := net.Dial("udp", "127.0.0.1:9"); return err })
	try("unix", func() error { _, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); return err })
	try("exec", func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) })
	try("fork", func() error { return exec.Command("/bin/true").Run() })
	try("kill_parent", func() error { return syscall.Kill(os.Getppid(), 0) })
	try("ptrace", func() error { return syscall.PtraceAttach(os.Getppid()) })
	try("memory", func() (err error) {
		b, err := syscall.Mmap(-1, 0, 1<<30, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		_ = b
		return err
	})
	_ = json.NewEncoder(os.Stderr).Encode(works)
	return 0
}

func init() { asUser = credential }

func credential(t testing.TB, uid int) *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process as somebody else")
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}

func TestLock(t *testing.T) {
	for _, uid := range []int{0, 65534} {
		t.Run(fmt.Sprintf("uid_%d", uid), func(t *testing.T) {
			cmd := exec.Command(exe(t), "__worker", "probe")
			if uid != 0 {
				cmd.SysProcAttr = asUser(t, uid)
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			got := map[string]string{}
			if err := json.Unmarshal(stderr.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			t.Logf("lock: %s", got["lock"])
			if !strings.Contains(got["lock"], "on") || !strings.Contains(got["lock"], "+256 MiB") {
				t.Errorf("lock: %s", got["lock"])
			}
			for _, name := range []string{"open", "create", "list", "tcp", "udp", "unix", "exec", "fork", "kill_parent", "ptrace"} {
				if s := got[name]; !strings.Contains(s, "not permitted") && !strings.Contains(s, "permission denied") {
					t.Errorf("%s: %s", name, s)
				}
			}
			if s := got["memory"]; !strings.Contains(s, "cannot allocate memory") {
				t.Errorf("memory: %s", s)
			}
		})
	}
}

// TestProcess serves a real worker process under its lock.
func TestProcess(t *testing.T) {
	for _, uid := range []int{0, 65534} {
		t.Run(fmt.Sprintf("uid_%d", uid), func(t *testing.T) {
			h := startProcess(t, uid)
			if h.hello.Lock.Seccomp != "on" || !strings.HasPrefix(h.hello.Lock.Landlock, "ABI ") || h.hello.Lock.Memory != "+1024 MiB" {
				t.Errorf("lock: %+v", h.hello.Lock)
			}
			for i := range uint32(20) {
				h.mount(i, "host.fn(1, async (a) => (await host.async('twice', a.n)) * 2)", time.Second)
				if got := h.must(invoke(i, 1, `{"n":21}`)); got != "42" {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}

func TestArguments(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	for _, args := range [][]string{{"--memory-mb", "1"}, {"--memory-mb", "x"}, {"--nonsense"}, {"more"}} {
		if code := run(args, stubPrelude, "stub"); code != 2 {
			t.Errorf("%v: exit status %d, want 2", args, code)
		}
	}
}

// rss is a process's resident memory in KiB.
func rss(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize() / 1024
}

// TestStuck: the engine looks at no clock inside some native loops.
func TestStuck(t *testing.T) {
	if raceEnabled {
		t.Skip("the report comes, but the process has to be killed: see TestStuckProcess")
	}
	h := startProcess(t, 0)
	h.mount(1, "host.fn(1, () => Array(4294967295).indexOf(1))", short)
	h.mount(2, "host.fn(1, () => 1)", time.Second)
	began := time.Now()
	id, _ := h.send(invoke(1, 1, "{}"))
	select {
	case f := <-h.stuck:
		if f.Mount != 1 || f.ID != id || f.Name != "tool" || f.Chain != id {
			t.Errorf("stuck: %+v", f)
		}
		if d := time.Since(began); d < short+grace || d > short+starving+time.Second {
			t.Errorf("reported after %v", d)
		}
	case <-time.After(wait):
		t.Fatal("no report")
	}
	if got := h.must(invoke(2, 1, "{}")); got != "1" {
		t.Errorf("got %s", got)
	}
	h.ping()
}

func TestProtocol(t *testing.T) {
	for name, frames := range map[string][]wire.Frame{
		"unknown_kind":          {{Kind: 200}},
		"a_worker's_kind":       {{Kind: wire.Result}},
		"load_no_json":          {{Kind: wire.Load, Mount: 1, Payload: []byte("{")}},
		"load_twice":            {loadFrame(1, "", time.Second), loadFrame(1, "", time.Second)},
		"invoke_without_a_head": {loadFrame(1, "", time.Second), {Kind: wire.Invoke, ID: 7, Mount: 1}},
		"the_same_call":         {loadFrame(1, "await new Promise(() => {})", time.Second), loadFrame(2, "", time.Second)},
	} {
		t.Run(strings.ReplaceAll(name, "'", ""), func(t *testing.T) {
			h := startProcess(t, 0)
			for _, f := range frames {
				h.oneWay(f)
			}
			select {
			case <-h.ended:
			case <-time.After(wait):
				t.Fatal("the worker goes on")
			}
			_ = h.cmd.Wait()
			if code := h.cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("exit status %d, want 1", code)
			}
			if text := h.stderr.String(); !strings.HasPrefix(text, "dsh worker: serve: the host broke the protocol") || strings.Count(text, "\n") != 1 {
				t.Errorf("stderr: %s", text)
			}
		})
	}
}

func TestQuit(t *testing.T) {
	h := startProcess(t, 0)
	h.mount(1, "host.fn(1, () => { while (true) {} })", time.Minute)
	h.send(invoke(1, 1, "{}"))
	h.oneWay(wire.Frame{Kind: wire.Quit})
	select {
	case <-h.ended:
	case <-time.After(wait):
		t.Fatal("the worker goes on")
	}
	_ = h.cmd.Wait()
	if code := h.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestLoadsAreFlat(t *testing.T) {
	if raceEnabled {
		t.Skip("the engine is too slow under the race detector")
	}
	h := startProcess(t, 0)
	const source = "host.fn(1, (a) => a); return { name: 'x', apply() {} }"
	cycle := func(from, n uint32) {
		for i := range n {
			h.mount(from+i, source, time.Second)
			h.must(invoke(from+i, 1, "1"))
			h.must(wire.Frame{Kind: wire.Unload, Mount: from + i})
		}
	}
	cycle(0, 200)
	before := rss(t, h.cmd.Process.Pid)
	cycle(1000, 1000)
	after := rss(t, h.cmd.Process.Pid)
	t.Logf("resident: %d KiB, then %d KiB", before, after)
	if after > before+8<<10 {
		t.Errorf("it grew from %d to %d KiB in 1,000 mounts", before, after)
	}
}

// TestStarved: an entry is not called stuck while the machine has no time for it.
func TestStarved(t *testing.T) {
	var c clock
	due := sinceStart()
	if !c.starved(due) {
		t.Error("one that nobody saw run late is called stuck")
	}
	c.late.Store(due)
	c.lateCPU.Store(int64(lock.Used()))
	if !c.starved(due) {
		t.Error("one that had no processor time is called stuck")
	}
	c.lateCPU.Store(int64(lock.Used() - grace))
	if c.starved(due) {
		t.Error("one that had its time is not called stuck")
	}
	due -= int64(starving)
	c.late.Store(due)
	c.lateCPU.Store(int64(lock.Used()))
	if c.starved(due) {
		t.Error("one that waits for ever is not called stuck")
	}
}
