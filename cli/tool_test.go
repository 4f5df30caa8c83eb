package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/calls"
	"github.com/dsh-go/dsh/limits"
)

// TestToolAnswersAtOnce: a call is answered before the next one is written, so
// that a program can drive it through a pipe.
func TestToolAnswersAtOnce(t *testing.T) {
	in, write := io.Pipe()
	read, out := io.Pipe()
	status := make(chan int, 1)
	var errs buffer
	go func() {
		status <- run(t.Context(), []string{"tool", "--json", "--services", "none"}, command.Streams{In: in, Out: out, Err: &errs})
		_ = out.Close()
	}()
	answers := bufio.NewScanner(read)
	answers.Buffer(nil, 1<<20)
	for i, c := range []struct{ call, name, text string }{
		{"tools/list\n", "tools/list", "cordis_mount — "},
		{"cordis_mount <<EOF\nreturn { name: 'quiet', apply() {} }\nEOF\n", "cordis_mount", "Temporary Plugin dyn-1 is running"},
		{"cordis_unmount {\"id\":\"dyn-1\"}\n", "cordis_unmount", "was unmounted"},
	} {
		if _, err := io.WriteString(write, c.call); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("call %d was not answered: %v", i, answers.Err())
		}
		var got answered
		if err := json.Unmarshal(answers.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Name != c.name || got.IsError || !strings.Contains(got.Text, c.text) || got.Value == nil {
			t.Errorf("call %d: %.300s", i, answers.Bytes())
		}
	}
	_ = write.Close()
	if s := <-status; s != 0 || errs.String() != "" {
		t.Errorf("status %d, standard error %q", s, errs.String())
	}
}

// TestToolInterrupted: a signal ends it though nothing more comes in.
func TestToolInterrupted(t *testing.T) {
	in, hold := io.Pipe()
	defer hold.Close()
	ctx, cancel := context.WithCancel(t.Context())
	read, out := io.Pipe()
	status := make(chan int, 1)
	var errs buffer
	go func() {
		status <- run(ctx, []string{"tool", "--services", "none"}, command.Streams{In: in, Out: out, Err: &errs})
	}()
	if _, err := io.WriteString(hold, "cordis_inspect {\"what\":\"tools\"}\n"); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(read); lines.Scan() && lines.Text() != "< ok"; {
	}
	cancel()
	go io.Copy(io.Discard, read)
	if s := <-status; s != 0 || errs.String() != "" {
		t.Errorf("status %d, standard error %q", s, errs.String())
	}
	_ = out.Close()
}

// TestHelpExample: what the help shows as calls is read and works.
func TestHelpExample(t *testing.T) {
	_, example, _ := strings.Cut(callForms, "\n\n")
	example, _, _ = strings.Cut(example, "\n\nThe word EOF")
	script, err := readScript("-", strings.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range script {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"cordis_inspect", "tools/list", "cordis_inspect", "cordis_mount", "hello", "cordis_unmount"}, names); diff != "" {
		t.Error(diff)
	}
	status, stdout, stderr := runText(t, example, "tool", "--services", "fs")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "\nhello world\n< ok\n") {
		t.Errorf("status %d, standard error %q, output %s", status, stderr, stdout)
	}
}

// TestShownCalls: text that came from elsewhere cannot steer a terminal.
func TestShownCalls(t *testing.T) {
	text := "a\nb"
	got := shown(calls.Call{Name: "x\x1b[2J", Arguments: []byte(`{"a": "` + strings.Repeat("y", 500) + `"}`), Text: &text, Param: "p"})
	if strings.ContainsAny(got, "\x1b\n") || len(got) > 400 || !strings.HasSuffix(got, "p (a text of 2 lines)") {
		t.Errorf("%q", got)
	}
}

func TestImpliedRoot(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for _, tt := range []struct {
		name, dir string
		want      int
	}{{"folder", dir, 1}, {"home", home, 0}, {"top", "/", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(tt.dir)
			if got := command.ImpliedRoots(tt.dir); len(got) != tt.want {
				t.Errorf("%q; want %d", got, tt.want)
			}
			// With a root to read none is implied.
			call := fmt.Sprintf("cordis_mount {\"code\": \"return { name: 'w', inject: ['fs'], async apply(ctx) { await ctx.fs.writeText('%s/x', '') } }\"}", dir)
			if _, out, _ := runText(t, call, "tool", "--services", "fs", "--read-only-root", dir); !strings.Contains(out, "may only read") {
				t.Error(out)
			}
		})
	}
}

// TestLargestReads: what fs gives at most fits into the memory that a plugin has
// by default, more than once.
func TestLargestReads(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bytes"), bytes.Repeat([]byte{0xff}, limits.FSBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `cordis_mount <<EOF
return { name: 'reader', inject: ['fs'], async apply(ctx) {
  let total = 0
  for (let i = 0; i < 3; i++) total += (await ctx.fs.readBytes('bytes')).length
  if (total !== 3 * (await ctx.fs.stat('bytes')).size) throw new Error('only ' + total)
} }
EOF
`
	status, out, errs := runText(t, script, "tool", "--services", "fs", "--root", dir)
	if status != 0 || !strings.Contains(out, `(plugin "reader"`) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}
