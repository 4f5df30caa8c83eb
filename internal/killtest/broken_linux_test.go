package killtest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/internal/casetest"
)

// command runs another command on the place's sessions.
func (p *place) command(args ...string) (output string, status int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, casetest.Program(p.t), args...)
	cmd.Env = []string{"HOME=" + p.home, "DSH_HOME=" + p.home}
	out, _ := cmd.CombinedOutput() // the status tells
	return string(out), cmd.ProcessState.ExitCode()
}

// TestBadLog: a session that this program cannot read is refused by every command with
// the reason, and its file stays as it is. What only a crash leaves is repaired.
func TestBadLog(t *testing.T) {
	p := newPlace(t)
	p.model.rounds = work[:1]
	p.succeed(p.live(stop{where: "never"}, "do it"))
	good, err := os.ReadFile(p.log())
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	middle := len(lines) / 2
	for name, c := range map[string]struct {
		bad  []byte
		says string
	}{
		"newer":   {bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1), "newer version"},
		"damaged": {bytes.Join([][]byte{bytes.Join(lines[:middle], nil), []byte("{\"type\":\n"), bytes.Join(lines[middle:], nil)}, nil), "damaged: line"},
		"missing": {bytes.Join(append(bytes.SplitAfter(bytes.Join(lines[:middle], nil), []byte("\n")), lines[middle+1:]...), nil), "damaged: line"},
		"nothing": {nil, "damaged"},
		"other":   {[]byte("PK\x03\x04 something else"), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(p.log(), c.bad, 0o600); err != nil {
				t.Fatal(err)
			}
			requests := p.model.requests()
			l := p.live(stop{where: "never"}, "--resume", "more")
			if l.status != 1 || !strings.Contains(l.stderr, c.says) || len(l.printed) > 0 || p.model.requests() != requests {
				t.Errorf("run: status %d, %d lines, %d requests, %s", l.status, len(l.printed), p.model.requests()-requests, l.stderr)
			}
			for _, args := range [][]string{{"sessions", "show", "s"}, {"sessions", "export", "s"}, {"sessions", "fork", "s"}} {
				if out, status := p.command(args...); status != 1 || !strings.Contains(out, c.says) {
					t.Errorf("%v: status %d, %s", args, status, out)
				}
			}
			if out, status := p.command("sessions", "list", "--all"); status != 0 || !strings.Contains(out, "s ") {
				t.Errorf("list: status %d, %s", status, out)
			}
			if now, err := os.ReadFile(p.log()); err != nil || !bytes.Equal(now, c.bad) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	torn := good[:len(good)-20]
	if err := os.WriteFile(p.log(), torn, 0o600); err != nil {
		t.Fatal(err)
	}
	p.printed = p.printed[:len(p.printed)-1] // this line is what was torn
	p.succeed(p.live(stop{where: "never"}, "--resume", "more"))
	p.check()
}

// TestFullDisk: what cannot be written is told, and ends the turn before the model is
// asked or a tool is run; when there is room again the session goes on.
func TestFullDisk(t *testing.T) {
	p := newPlace(t)
	// The size of files is limited, to about that of a log in the middle of the work.
	p.before = []string{"sh", "-c", `ulimit -f 32; exec "$0" "$@"`}
	l := p.live(stop{where: "never"}, "do all of it")
	if l.status != 1 || !strings.Contains(l.stderr, "the disk is full") || !strings.Contains(l.stderr, "SESSION_STORE") {
		t.Fatalf("status %d: %s", l.status, l.stderr)
	}
	p.before = nil
	p.finish()
}

// TestReadOnlyHome: a home that cannot be written is an error that says so, before
// the model is asked.
func TestReadOnlyHome(t *testing.T) {
	p := newPlace(t)
	for _, home := range []string{"/sys/home", "/dev/null"} {
		p.home = home
		if l := p.live(stop{where: "never"}, "do it"); l.status != 1 || !strings.Contains(l.stderr, home) || p.model.requests() > 0 {
			t.Errorf("%s: status %d, %d requests, %s", home, l.status, p.model.requests(), l.stderr)
		}
	}
}
