package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/tool"
)

func TestDefinitions(t *testing.T) {
	s := &shell{}
	for _, d := range []*tool.Definition{s.bashTool(), s.outputTool(), s.listTool(), s.killTool()} {
		golden(t, d.Name, fmt.Sprintf("%s\n%s\n%s\n", d.Name, d.Description, d.Parameters.JSON()))
	}
}

func TestTexts(t *testing.T) {
	r := newRig(t)
	if err := os.Mkdir(filepath.Join(r.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ args, want string }{
		"stdout":           {`"command":"printf 'a\\nb\\n'"`, "a\nb"},
		"nothing":          {`"command":"true"`, "(no output)"},
		"exit-code":        {`"command":"echo a; exit 3"`, "a\n[exit code 3]"},
		"only-exit-code":   {`"command":"false"`, "(no output)\n[exit code 1]"},
		"stderr":           {`"command":"echo a; echo b >&2"`, "a\n[stderr]\nb"},
		"only-stderr":      {`"command":"echo b >&2"`, "[stderr]\nb"},
		"signal":           {`"command":"kill -9 $$"`, "(no output)\n[killed by SIGKILL]"},
		"timed-out":        {`"command":"echo a; sleep 60","timeout_ms":300`, "a\n[timed out after 300 ms and was stopped; give timeout_ms up to 600000, or set run_in_background]"},
		"binary":           {`"command":"printf 'a\\377'"`, "a\uFFFD\n[stdout is not text: what is not shows as \uFFFD]"},
		"dir":              {`"command":"pwd"`, "DIR"},
		"relative-workdir": {`"command":"pwd","workdir":"sub"`, "DIR/sub"},
		"absolute-workdir": {`"command":"pwd","workdir":"/"`, "/"},
		"bad-workdir":      {`"command":"pwd","workdir":"none"`, `Error: workdir "DIR/none" does not exist; name a folder that does, or make it first`},
		"no-command":       {`"command":" "`, "Error: command is empty: give the command line to run"},
		"zero-timeout":     {`"command":"true","timeout_ms":0`, "Error: timeout_ms is 0; it must be from 1 to 600000. For what takes longer set run_in_background and leave timeout_ms out"},
		"long-timeout":     {`"command":"true","timeout_ms":600001`, "Error: timeout_ms is 600001; it must be from 1 to 600000. For what takes longer set run_in_background and leave timeout_ms out"},
		"background":       {`"command":"true","run_in_background":true`, "started background task t1\nRead what it writes with task_output; end it with task_kill."},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(text(r.call("bash", "{"+c.args+"}")), dir, "DIR")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	r := newRig(t)
	got := r.bash(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo end", limits.BashOutput))
	_, file, ok := strings.Cut(got, "end\n[stdout is truncated: only its end is shown; all of it is in ")
	file, _, ok2 := strings.Cut(file, ", which grep, head and tail can read]")
	if !ok || !ok2 {
		t.Fatalf("…%s", got[max(0, len(got)-300):])
	}
	if info, err := os.Stat(file); err != nil || info.Size() != limits.BashOutput+4 {
		t.Errorf("%s: %v", file, err)
	}
}

// TestResultIsOrdinary: a command that fails is no failure of the tool.
func TestResultIsOrdinary(t *testing.T) {
	r := newRig(t)
	res := r.call("bash", `{"command":"echo a; exit 3"}`)
	want := `{"stdout":{"text":"a\n"},"stderr":{"text":""},"exit_code":3,"timeout_ms":120000}`
	if res.IsError || string(res.Value) != want {
		t.Errorf("%s", res.Value)
	}
}

func TestLiveOutput(t *testing.T) {
	r := newRig(t)
	go2 := filepath.Join(r.dir, "go")
	first := make(chan struct{})
	var once sync.Once
	var heard strings.Builder
	res := r.callWith(r.Context(), tool.Call{
		Name:      "bash",
		Arguments: lossless.Text(`{"command":"echo one; until [ -e go ]; do sleep 0.02; done; echo two"}`),
		OnProgress: func(p tool.Progress) {
			heard.WriteString(p.Text)
			once.Do(func() {
				close(first)
				if err := os.WriteFile(go2, nil, 0o644); err != nil {
					t.Error(err)
				}
			})
		},
	})
	<-first // the command ends only when its first piece was shown
	if text(res) != "one\ntwo" || !strings.HasPrefix(heard.String(), "one\n") {
		t.Errorf("%q, heard %q", text(res), heard.String())
	}
}

// TestLiveOutputIsBounded: much output is few pieces, each the end of what came.
func TestLiveOutputIsBounded(t *testing.T) {
	r := newRig(t)
	n, begun := 0, time.Now()
	r.callWith(r.Context(), tool.Call{
		Name:      "bash",
		Arguments: lossless.Text(`{"command":"for i in $(seq 60); do head -c 20000 /dev/zero | tr '\\0' x; echo; sleep 0.01; done"}`),
		OnProgress: func(p tool.Progress) {
			n++
			if len(p.Text) != limits.Progress {
				t.Errorf("a piece of %d bytes", len(p.Text))
			}
		},
	})
	if most := int(time.Since(begun)/limits.ShellLive) + 1; n < 1 || n > most {
		t.Errorf("%d pieces, of at most %d", n, most)
	}
}

func TestAborted(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	res := r.callWith(ctx, tool.Call{
		Name:       "bash",
		Arguments:  lossless.Text(`{"command":"echo $$; exec sleep 300"}`),
		OnProgress: func(tool.Progress) { cancel() },
	})
	if !res.IsError || res.Error.Code != tool.CodeAborted {
		t.Errorf("%+v", res)
	}
}

func TestDenied(t *testing.T) {
	r := newRig(t)
	var asked []bash.Run
	if _, err := bash.RunIntent.On(r.Root, func(ctx context.Context, run bash.Run, _ func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		if tool.ActorOf(ctx).Scope != r.agent.Scope() {
			t.Error("who acts?")
		}
		asked = append(asked, run)
		return tool.Deny("not here"), nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, background := range []string{"false", "true"} {
		if got := text(r.call("bash", `{"command":"true","run_in_background":`+background+`}`)); got != "Error: not here" {
			t.Error(got)
		}
	}
	for i := range asked {
		asked[i].Shell = "" // what there is here
	}
	want := []bash.Run{{Command: "true", Workdir: r.dir}, {Command: "true", Workdir: r.dir, Background: true}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

func TestConfig(t *testing.T) {
	k := agenttest.New(t)
	k.Mount(bash.Plugin(bash.Config{}))
	f, err := k.Root.Mount(&cordis.Plugin{Name: "p", Apply: Plugin(Config{Dir: "relative"}).Apply}, nil)
	if err == nil {
		err = f.Await(k.Context())
	}
	if err == nil || !strings.Contains(err.Error(), `"relative" is not absolute`) {
		t.Errorf("%v", err)
	}
}

func TestCommandCards(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct{ args, call, result string }{
		"run": {`{"command":"echo a; echo b >&2; exit 2","description":"Say a","workdir":"/"}`,
			`{"type":"terminal","title":"echo a; echo b >&2; exit 2","description":"Say a","cwd":"/"}`,
			`{"type":"terminal","output":"a\nb","exitCode":2}`},
		"killed":     {`{"command":"kill -9 $$"}`, `{"type":"terminal","title":"kill -9 $$"}`, `{"type":"terminal","output":"","signal":"SIGKILL"}`},
		"background": {`{"command":"true","run_in_background":true}`, `{"type":"terminal","title":"true"}`, `{"type":"terminal","output":"started background task t1"}`},
		"refused":    {`{"command":"true","workdir":"none"}`, `{"type":"terminal","title":"true","cwd":"none"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := lossless.Text(c.args)
			res := r.call("bash", c.args)
			if got := card(t, r.Tools.PresentCall(t.Context(), "bash", r.agent.Scope(), args)); got != c.call {
				t.Error(cmp.Diff(c.call, got))
			}
			if got := card(t, r.Tools.PresentResult(t.Context(), "bash", r.agent.Scope(), args, res)); c.result != "" && got != c.result {
				t.Error(cmp.Diff(c.result, got))
			}
		})
	}
}

func card(t *testing.T, c *tool.Card) string {
	t.Helper()
	out, err := c.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 ms": 0, "999 ms": 999 * time.Millisecond, "1 s": time.Second, "59 s": 59400 * time.Millisecond,
		"1 min 0 s": 59500 * time.Millisecond, "59 min 59 s": 3599 * time.Second, "26 h 3 min": 26*time.Hour + 3*time.Minute,
	} {
		if got := duration(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
