package bash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

// The codes of errors.
const (
	CodeBadRequest = "BASH_BAD_REQUEST"
	CodeBadWorkdir = "BASH_BAD_WORKDIR"
	CodeDenied     = "BASH_DENIED"
	CodeTooMany    = "BASH_TOO_MANY"
	CodeNoShell    = "BASH_NO_SHELL"
	CodeFailed     = "BASH_FAILED"
)

func fail(code, format string, args ...any) error {
	return &service.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// form is what a Command may be in JSON.
const form = `a command is a text, or an object {command, workdir?, timeoutMs?, stdoutMaxBytes?, stdin?, env?}`

// meant gives the setting that a name from elsewhere stands for.
var meant = map[string]string{
	"cmd": "command", "script": "command", "cwd": "workdir", "dir": "workdir", "timeout": "timeoutMs",
	"maxBytes": "stdoutMaxBytes", "input": "stdin", "environment": "env",
}

// UnmarshalJSON reads a text, a Request or a Spec.
func (c *Command) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' {
		*c = Command{}
		return json.Unmarshal(data, &c.Request.Command)
	}
	if len(data) == 0 || data[0] != '{' {
		return fail(CodeBadRequest, "%s, not %s", form, plain.Line(string(data), limits.Preview))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return fail(CodeBadRequest, "%s: %v", form, err)
	}
	var r Request
	var shell string
	for name, into := range map[string]any{
		"command": &r.Command, "workdir": &r.Workdir, "timeoutMs": &r.TimeoutMs,
		"stdoutMaxBytes": &r.StdoutMaxBytes, "stdin": &r.Stdin, "env": &r.Env, "shell": &shell,
	} {
		raw, ok := fields[name]
		delete(fields, name)
		if !ok || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return fail(CodeBadRequest, "%s of a command must be %s, not %s", name, kindOf(into), plain.Line(string(raw), limits.Preview))
		}
		if n, ok := into.(*int); ok && *n == 0 {
			*n = -1 // refused by name; absent is something else
		}
	}
	for name := range fields {
		if m := meant[name]; m != "" {
			return fail(CodeBadRequest, "a command has no %q; it is called %s: %s", name, m, form)
		}
		return fail(CodeBadRequest, "a command has no %q: %s", plain.Line(name, limits.Name), form)
	}
	*c = Command{r}
	return nil
}

func kindOf(into any) string {
	switch into.(type) {
	case *int:
		return "a whole number"
	case *map[string]string:
		return "an object of texts, such as {LANG: 'C'}"
	}
	return "a text"
}

// with lays options over the settings of the command.
func (c Command) with(o *RunOptions) Command {
	if o == nil {
		return c
	}
	if o.Workdir != nil {
		c.Workdir = *o.Workdir
	}
	for _, n := range []struct{ to, from *int }{{&c.TimeoutMs, o.TimeoutMs}, {&c.StdoutMaxBytes, o.StdoutMaxBytes}} {
		if n.from == nil {
			continue
		}
		*n.to = *n.from
		if *n.from == 0 {
			*n.to = -1 // refused by name
		}
	}
	if o.Stdin != nil {
		c.Stdin = *o.Stdin
	}
	if o.Env != nil {
		c.Env = o.Env
	}
	return c
}

// resolve checks a command, and fills in the defaults; the timeout's is the caller's.
// It gives the path of the shell besides.
func (l *Local) resolve(c Command, timeout time.Duration) (Spec, string, error) {
	s := Spec{
		Command: c.Request.Command, TimeoutMs: c.TimeoutMs, StdoutMaxBytes: c.StdoutMaxBytes,
		Stdin: c.Stdin, Env: c.Env,
	}
	if s.TimeoutMs == 0 {
		s.TimeoutMs = int(timeout.Milliseconds())
	}
	if s.StdoutMaxBytes == 0 {
		s.StdoutMaxBytes = limits.BashOutput
	}
	if err := s.check(c.TimeoutMs != 0); err != nil {
		return Spec{}, "", err
	}
	var err error
	if s.Workdir, err = l.workdir(c.Workdir); err != nil {
		return Spec{}, "", err
	}
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			s.Shell = name
			return s, path, nil
		}
	}
	return Spec{}, "", fail(CodeNoShell, "there is neither bash nor sh on the PATH of the program, so no command can run here; the person who runs it has to install one")
}

func (s Spec) check(limited bool) error {
	switch longest := int(limits.BashTimeoutMax.Milliseconds()); {
	case strings.TrimSpace(s.Command) == "":
		return fail(CodeBadRequest, "the command is empty: %s", form)
	case strings.ContainsRune(s.Command, 0):
		return fail(CodeBadRequest, "the command holds a NUL character, which no command line can; write the text without it")
	case len(s.Command) > limits.BashCommand:
		return fail(CodeBadRequest, "the command has %d bytes, more than %d; give long data on stdin, or put a script into a file and run that",
			len(s.Command), limits.BashCommand)
	case limited && (s.TimeoutMs < 1 || s.TimeoutMs > longest):
		return fail(CodeBadRequest, "timeoutMs must be from 1 to %d; for what takes longer use start without it", longest)
	case s.StdoutMaxBytes < 1 || s.StdoutMaxBytes > limits.BashOutputMax:
		return fail(CodeBadRequest, "stdoutMaxBytes must be from 1 to %d; longer output is found in the file that stdout.spillPath names", limits.BashOutputMax)
	case len(s.Stdin) > limits.BashStdin:
		return fail(CodeBadRequest, "stdin has %d bytes, more than %d; put the data into a file and redirect from it (< file)", len(s.Stdin), limits.BashStdin)
	}
	size := 0
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fail(CodeBadRequest, "env holds the name %q; a name is not empty and has neither = nor NUL", plain.Line(name, limits.Name))
		}
		if strings.ContainsRune(value, 0) {
			return fail(CodeBadRequest, "env.%s holds a NUL character, which the environment cannot", plain.Line(name, limits.Name))
		}
		size += len(name) + len(value) + 2
	}
	if size > limits.BashEnv {
		return fail(CodeBadRequest, "env has %d bytes, more than %d; give long data on stdin or in a file", size, limits.BashEnv)
	}
	return nil
}

// workdir gives the absolute folder of a request, which must be there.
func (l *Local) workdir(asked string) (string, error) {
	if strings.ContainsRune(asked, 0) {
		return "", fail(CodeBadWorkdir, "the workdir holds a NUL character, which no path can")
	}
	dir, shown := asked, fmt.Sprintf("workdir %q", plain.Line(asked, limits.SourceLine))
	switch {
	case asked == "":
		dir, shown = l.dir, "the default workdir"
	case !filepath.IsAbs(dir):
		dir = filepath.Join(l.dir, dir)
		shown += " (relative to the default workdir)"
	}
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fail(CodeBadWorkdir, "%s does not exist; name a folder that does, or make it first", shown)
	case errors.Is(err, os.ErrPermission):
		return "", fail(CodeBadWorkdir, "%s cannot be entered: permission denied", shown)
	case err != nil:
		return "", fail(CodeBadWorkdir, "%s cannot be used: %v", shown, reason(err))
	case !info.IsDir():
		return "", fail(CodeBadWorkdir, "%s is not a folder; name the folder that it is in", shown)
	}
	return dir, nil
}

// reason is an error without the path, which may be the host's business.
func reason(err error) error {
	if pe := new(os.PathError); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
