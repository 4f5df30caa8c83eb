package bash_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/tool"
)

func TestCommandForms(t *testing.T) {
	full := bash.Request{Command: "ls", Workdir: "/", TimeoutMs: 5, StdoutMaxBytes: 6, Stdin: "in", Env: map[string]string{"A": "b"}}
	for _, tt := range []struct {
		name, json string
		want       bash.Request
		err        string // a part of the message
	}{
		{"text", `"ls"`, bash.Request{Command: "ls"}, ""},
		{"request", `{"command":"ls","workdir":"/","timeoutMs":5,"stdoutMaxBytes":6,"stdin":"in","env":{"A":"b"}}`, full, ""},
		{"spec", `{"command":"ls","workdir":"/","timeoutMs":5,"stdoutMaxBytes":6,"stdin":"in","env":{"A":"b"},"shell":"bash"}`, full, ""},
		{"nulls", `{"command":"ls","workdir":null}`, bash.Request{Command: "ls"}, ""},
		{"number", `7`, bash.Request{}, "a command is a text, or an object"},
		{"list", `["ls","-l"]`, bash.Request{}, `not ["ls","-l"]`},
		{"null", `null`, bash.Request{}, "not null"},
		{"unknown", `{"command":"ls","shellArgs":1}`, bash.Request{}, `has no "shellArgs"`},
		{"other_name", `{"command":"ls","cwd":"/"}`, bash.Request{}, "it is called workdir"},
		{"wrong_type", `{"command":"ls","timeoutMs":"5s"}`, bash.Request{}, `timeoutMs of a command must be a whole number, not "5s"`},
		{"wrong_env", `{"command":"ls","env":{"A":1}}`, bash.Request{}, "env of a command must be an object of texts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c bash.Command
			err := json.Unmarshal([]byte(tt.json), &c)
			if tt.err != "" {
				if text := wantCode(t, err, bash.CodeBadRequest); !strings.Contains(text, tt.err) {
					t.Errorf("message %q, want %q in it", text, tt.err)
				}
				return
			}
			if d := cmp.Diff(tt.want, c.Request); err != nil || d != "" {
				t.Errorf("%v %s", err, d)
			}
		})
	}
}

func FuzzCommand(f *testing.F) {
	f.Add([]byte(`"ls"`))
	f.Add([]byte(`{"command":"ls","env":{"A":"b"},"timeoutMs":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c bash.Command
		if json.Unmarshal(data, &c) != nil {
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again bash.Command
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	dir := must(use.Resolve(line("x")))(t).Workdir
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	parsed := func(text string) bash.Command {
		var c bash.Command
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	zero := 0
	for _, tt := range []struct {
		name    string
		command bash.Command
		options *bash.RunOptions
		code    string
		text    string
	}{
		{"empty", line(" \n"), nil, bash.CodeBadRequest, "the command is empty"},
		{"nul", line("echo \x00"), nil, bash.CodeBadRequest, "NUL"},
		{"long", line("echo " + strings.Repeat("x", limits.BashCommand)), nil, bash.CodeBadRequest, "100005 bytes"},
		{"timeout_zero", parsed(`{"command":"x","timeoutMs":0}`), nil, bash.CodeBadRequest, "timeoutMs must be from 1 to 600000"},
		{"timeout_zero_option", line("x"), &bash.RunOptions{TimeoutMs: &zero}, bash.CodeBadRequest, "use start without it"},
		{"timeout_long", parsed(`{"command":"x","timeoutMs":600001}`), nil, bash.CodeBadRequest, "600000"},
		{"output_long", parsed(`{"command":"x","stdoutMaxBytes":1000001}`), nil, bash.CodeBadRequest, "spillPath"},
		{"output_zero", line("x"), &bash.RunOptions{StdoutMaxBytes: &zero}, bash.CodeBadRequest, "stdoutMaxBytes must be"},
		{"stdin_long", bash.Command{Request: bash.Request{Command: "x", Stdin: strings.Repeat("x", limits.BashStdin+1)}}, nil, bash.CodeBadRequest, "redirect"},
		{"env_name", parsed(`{"command":"x","env":{"A=B":"c"}}`), nil, bash.CodeBadRequest, `"A=B"`},
		{"env_value", parsed(`{"command":"x","env":{"A":"\u0000"}}`), nil, bash.CodeBadRequest, "env.A"},
		{"env_long", bash.Command{Request: bash.Request{Command: "x", Env: map[string]string{"A": strings.Repeat("x", limits.BashEnv)}}}, nil, bash.CodeBadRequest, "env has"},
		{"workdir_missing", parsed(`{"command":"x","workdir":"nowhere"}`), nil, bash.CodeBadWorkdir, `"nowhere" (relative to the default workdir) does not exist`},
		{"workdir_file", parsed(`{"command":"x","workdir":"file"}`), nil, bash.CodeBadWorkdir, "is not a folder"},
		{"workdir_nul", parsed(`{"command":"x","workdir":"a\u0000b"}`), nil, bash.CodeBadWorkdir, "NUL"},
		{"workdir_long", bash.Command{Request: bash.Request{Command: "x", Workdir: strings.Repeat("x", 5000)}}, nil, bash.CodeBadWorkdir, "file name too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := use.Run(within(t, time.Minute), tt.command, tt.options)
			text := wantCode(t, err, tt.code)
			if !strings.Contains(text, tt.text) || strings.Contains(text, dir) || len(text) > limits.ErrorText {
				t.Errorf("message %q, want %q in it", text, tt.text)
			}
			if _, err := use.Start(within(t, time.Minute), tt.command, tt.options); err == nil {
				t.Error("start took it")
			}
		})
	}
}

func TestNoShell(t *testing.T) {
	bin := t.TempDir()
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	t.Setenv("PATH", bin)
	_, err := use.Run(within(t, time.Minute), line("true"), nil)
	wantCode(t, err, bash.CodeNoShell)
	if err := os.Symlink("/bin/sh", filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	got := must(use.Run(within(t, time.Minute), line("echo $0"), nil))(t)
	if spec := must(use.Resolve(line("true")))(t); got.Shell != "sh" || spec.Shell != "sh" || !strings.HasSuffix(got.Stdout.Text, "sh\n") {
		t.Errorf("fell back to %q, said %q", got.Stdout.Text, got.Shell)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, name := range []string{"", "A=B", "AWS_*"} {
		f, err := cordis.New().Mount(bash.Plugin(bash.Config{PassEnv: []string{name}}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Await(within(t, time.Minute)); err == nil || !strings.Contains(err.Error(), "one variable") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPolicy(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-7")
	var asked []bash.Run
	_, err := bash.RunIntent.On(r.root, func(ctx context.Context, run bash.Run, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		asked = append(asked, run)
		switch {
		case strings.Contains(run.Command, "rm "):
			return tool.Deny("no rm here; use fs.remove"), nil
		case strings.Contains(run.Command, "ask"):
			return tool.Ask("may it?"), nil
		case strings.Contains(run.Command, "broken"):
			return tool.Decision{}, errors.New("broken policy")
		}
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, time.Minute)
	exitCode(t, must(use.Run(ctx, line("true"), nil))(t), 0)
	for command, want := range map[string]string{"rm -rf x": "no rm here; use fs.remove", "ask": "may it?", "broken": "broken policy"} {
		_, err := use.Start(ctx, line(command), nil)
		if text := wantCode(t, err, bash.CodeDenied); !strings.Contains(text, want) {
			t.Errorf("%s: %q", command, text)
		}
	}
	dir := must(use.Resolve(line("x")))(t).Workdir
	if d := cmp.Diff(bash.Run{Command: "true", Workdir: dir, By: "dyn-7", Shell: asked[0].Shell}, asked[0]); d != "" {
		t.Error(d)
	}
	if !asked[1].Background {
		t.Error("start is not said to be in the background")
	}
}

func TestTooMany(t *testing.T) {
	r := newRig(t, bash.Config{})
	ctx := within(t, time.Minute)
	use, f := r.plugin("dyn-1")
	for range limits.BashRunning {
		must(use.Start(ctx, line("sleep 1000"), nil))(t)
	}
	_, err := use.Run(ctx, line("true"), nil)
	wantCode(t, err, bash.CodeTooMany)
	other, _ := r.plugin("dyn-2")
	exitCode(t, must(other.Run(ctx, line("true"), nil))(t), 0)
	dispose(t, f)
	_, err = use.Run(ctx, line("true"), nil)
	if !errors.Is(err, cordis.ErrInactive) {
		t.Errorf("a plugin that has ended: %v", err)
	}
}
