package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestHideEnviron: a process of the same user does not get at the environment, and
// the program can still start itself. The other run shows that it would get there.
func TestHideEnviron(t *testing.T) {
	user := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // whom nothing stops
		user.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for name, args := range map[string][]string{"hidden": nil, "open": {"open"}} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", append([]string{hiddenCommand}, args...)...)
			cmd.SysProcAttr = user
			cmd.Dir = "/"
			cmd.Env = []string{"DEEPSEEK_API_KEY=sk-environ"}
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
			defer func() {
				_ = in.Close()
				_ = cmd.Wait()
			}()
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready <nil>\n" {
				t.Fatalf("it says %q, %v", line, err)
			}
			look := exec.Command("cat", fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
			look.SysProcAttr, look.Dir = user, "/"
			got, _ := look.CombinedOutput() // its text tells
			if seen := strings.Contains(string(got), "sk-environ"); seen == (name == "hidden") {
				t.Errorf("another process sees %q", got)
			}
		})
	}
}
