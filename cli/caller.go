package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/calls"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/serve/mcp"
	"github.com/dsh-go/dsh/tool"
)

// caller makes calls one after the other and prints each with its answer.
type caller struct {
	registry *tool.Registry
	server   *mcp.Server
	out      io.Writer
	asJSON   bool
	failFast bool

	made   int
	failed []string // "line 3 (word_count)"
}

// answered is a call with its answer, as --json prints it.
type answered struct {
	Line    int           `json:"line"`
	Name    string        `json:"name"`
	IsError bool          `json:"isError"`
	Text    string        `json:"text"`
	Value   lossless.Text `json:"value,omitempty"`
	MS      float64       `json:"ms"`
}

// errStopped ends a script at its first failure.
var errStopped = errors.New("stopped at the first call that failed")

// readScript reads all calls of a file, or of in for "-".
func readScript(name string, in io.Reader) ([]calls.Call, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, command.Usagef("read script: %w", err)
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	} else {
		name = "standard input"
	}
	var script []calls.Call
	for r := calls.NewReader(in); ; {
		c, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return script, nil
		case err != nil:
			return nil, command.Usagef("%s: %w", name, err)
		}
		script = append(script, c)
	}
}

// play makes the calls of a script.
func (p *caller) play(ctx context.Context, script []calls.Call) error {
	for _, c := range script {
		if ctx.Err() != nil {
			return p.outcome(nil)
		}
		if err := p.call(ctx, c); err != nil {
			return p.outcome(err)
		}
	}
	return p.outcome(nil)
}

// read is what came of reading one call.
type read struct {
	call calls.Call
	err  error
}

// follow makes the calls that come from in, each when it is there, and closes
// in. The end of ctx ends it, whatever in does.
func (p *caller) follow(ctx context.Context, in io.ReadCloser) error {
	reads, over := make(chan read), make(chan struct{})
	go func() { // ends with in; a terminal may keep it until the program ends
		defer close(reads)
		for r := calls.NewReader(in); ; {
			var next read
			next.call, next.err = r.Next()
			select {
			case reads <- next:
			case <-over:
				return
			}
			if wrong := new(calls.SyntaxError); next.err != nil && !errors.As(next.err, &wrong) {
				return
			}
		}
	}()
	defer func() {
		close(over)
		_ = in.Close() // what is still in it is of no use any more
	}()
	for {
		select {
		case <-ctx.Done():
			return p.outcome(nil)
		case next, ok := <-reads:
			if !ok || errors.Is(next.err, io.EOF) {
				return p.outcome(nil)
			}
			if err := p.take(ctx, next); err != nil {
				return p.outcome(err)
			}
		}
	}
}

// take answers what was read.
func (p *caller) take(ctx context.Context, r read) error {
	wrong := new(calls.SyntaxError)
	if errors.As(r.err, &wrong) {
		return p.print(answered{Line: wrong.Line, Name: noCall, IsError: true, Text: "Error: " + wrong.Error()}, noCall)
	}
	if r.err != nil {
		return r.err
	}
	return p.call(ctx, r.call)
}

// noCall stands for a line that is no call.
const noCall = "no call"

// outcome says what failed.
func (p *caller) outcome(err error) error {
	if len(p.failed) == 0 || err != nil && !errors.Is(err, errStopped) {
		return err
	}
	const shown = 10
	list := p.failed
	more := ""
	if n := len(list) - shown; n > 0 {
		list, more = list[:shown], fmt.Sprintf(" and %d more", n)
	}
	text := fmt.Sprintf("%d of %d calls failed: %s%s", len(p.failed), p.made, strings.Join(list, ", "), more)
	if err != nil {
		text += "; " + err.Error()
	}
	return errors.New(text)
}

// call makes one call.
func (p *caller) call(ctx context.Context, c calls.Call) error {
	begun := time.Now()
	a := answered{Line: c.Line, Name: c.Name}
	args, err := p.arguments(c)
	switch {
	case err != nil:
		a.IsError, a.Text = true, "Error: "+err.Error()
	case c.Name == listCall:
		err = p.list(&a)
	default:
		res := p.registry.Execute(ctx, tool.Call{Name: c.Name, Arguments: args})
		a.IsError, a.Text, a.Value = res.IsError, textOf(res.Content), res.Value
	}
	if c.Name == listCall && err != nil {
		return err
	}
	a.MS = float64(time.Since(begun).Microseconds()) / 1000
	return p.print(a, shown(c))
}

// list answers tools/list.
func (p *caller) list(a *answered) error {
	list, err := p.server.List()
	if err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	a.Value = list
	a.Text, err = listText(list)
	return err
}

// arguments are the JSON object that a call is made with.
func (p *caller) arguments(c calls.Call) (json.RawMessage, error) {
	var candidates []string
	if v, ok := p.registry.Get(c.Name, nil); ok && c.Text != nil {
		candidates = stringArguments(v)
	} else if c.Text != nil {
		candidates = []string{"text"} // for an answer that says what there is
	}
	args, err := c.Fill(candidates)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", c.Line, err)
	}
	return args, nil
}

// stringArguments are the arguments that a text can be for: the strings that
// are required, or else all strings.
func stringArguments(v *tool.View) []string {
	var s struct {
		Properties map[string]struct{ Type any } `json:"properties"`
		Required   []string                      `json:"required"`
	}
	if err := json.Unmarshal(v.Parameters.JSON(), &s); err != nil {
		return nil
	}
	var required, all []string
	for _, name := range s.Required {
		if s.Properties[name].Type == "string" {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		return required
	}
	for name, p := range s.Properties {
		if p.Type == "string" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// shown is a call as the transcript shows it.
func shown(c calls.Call) string {
	text := plain.Name(c.Name)
	if c.Arguments != nil {
		text += " " + plain.Preview(string(c.Arguments))
	}
	if c.Text != nil {
		if c.Param != "" {
			text += " " + plain.Name(c.Param)
		}
		text += " (a text of " + lines(strings.Count(*c.Text, "\n")+1) + ")"
	}
	return text
}

func lines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// print prints an answer, and counts it.
func (p *caller) print(a answered, call string) error {
	p.made++
	status := "ok"
	if a.IsError {
		status = "error"
		p.failed = append(p.failed, fmt.Sprintf("line %d (%s)", a.Line, plain.Name(a.Name)))
	}
	var err error
	if p.asJSON {
		err = command.PrintJSON(p.out, a)
	} else {
		err = command.PrintText(p.out, fmt.Sprintf("> %s\n%s\n< %s", call, strings.TrimRight(a.Text, "\n"), status))
		if err == nil {
			_, err = io.WriteString(p.out, "\n")
		}
	}
	if err == nil && a.IsError && p.failFast {
		err = errStopped
	}
	return err
}

// listText shows the tools of a list to a person.
func listText(list json.RawMessage) (string, error) {
	var l struct {
		Tools []struct {
			Name, Title, Description  string
			InputSchema, OutputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(list, &l); err != nil {
		return "", fmt.Errorf("read list of tools: %w", err)
	}
	var b strings.Builder
	for i, t := range l.Tools {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t.Name)
		if t.Title != "" {
			b.WriteString(" — " + plain.Line(t.Title, limits.Preview))
		}
		b.WriteString("\n  " + strings.ReplaceAll(t.Description, "\n", "\n  "))
		fmt.Fprintf(&b, "\n  arguments: %s\n", t.InputSchema)
		if t.OutputSchema != nil {
			fmt.Fprintf(&b, "  value: %s\n", t.OutputSchema)
		}
	}
	return b.String(), nil
}
