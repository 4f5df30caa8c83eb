package supervise

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
)

func TestTimesAreThoseOfTheTable(t *testing.T) {
	for name, x := range map[string][2]time.Duration{
		"linger":    {linger, limits.BashLinger},
		"killAfter": {killAfter, limits.BashKillAfter},
		"lost":      {lost, limits.BashLost},
		"giveUp":    {giveUp, limits.BashGiveUp},
		"giveUpAll": {giveUpAll, limits.BashGiveUpAll},
	} {
		if x[0] != x[1] {
			t.Errorf("%s is %v, in the table %v", name, x[0], x[1])
		}
	}
}

func TestDescendants(t *testing.T) {
	// A name with a space and a bracket is one word all the same.
	name := t.TempDir() + "/a) Z 1 (b"
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		err = os.Symlink(sleep, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `"$1" 1000 & echo $!; wait`, "sh", name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	groups := 0
	for _, p := range descendants() {
		if p.group == pid {
			groups++
		}
	}
	if groups != 2 {
		t.Errorf("%d of 2 seen: %v", groups, descendants())
	}
	signal(-pid, syscall.SIGKILL)
	_ = cmd.Wait()
	for _, p := range descendants() {
		if p.group == pid {
			t.Errorf("seen after its end: %v", p)
		}
	}
	if _, ok := look(1 << 30); ok {
		t.Error("saw a process that is not there")
	}
}

// Who types the command by hand has no socket there.
func TestIsSocket(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = syscall.Close(pair[0]), syscall.Close(pair[1]) }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if !isSocket(pair[0]) || isSocket(int(null.Fd())) || isSocket(1<<20) {
		t.Error("a socket is a socket, and nothing else")
	}
}
