// Package manual lets a person play the model. What the model would be sent is
// written for them, and what they type is the answer. It needs no key.
//
// They type text, and end the answer with a line that is only a dot. A line that
// begins with a slash is a command instead:
//
//	/call NAME {"json": "arguments"}    calls a tool; the arguments may be left out
//	/think TEXT                         is reasoning
//	/max                                ends the answer as cut by the limit of tokens
//	/fail CODE MESSAGE                  fails the request
//	/tools                              shows the tools with their parameters
//	/tools NAME                         shows one whole
//	/help                               shows this
//
// A line that begins with two slashes is text with one of them.
//
// Of a session's requests after the first only what is new is written: messages,
// and a system prompt that is another one than before.
package manual

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
)

// Adapter asks a person. One request is answered at a time; others wait for it,
// or for the end of their context.
type Adapter struct {
	out   io.Writer
	turn  chan struct{} // holds a token while nobody answers
	lines chan line
	stop  chan struct{}
	once  sync.Once
	shown map[string]shown // by session; the holder of the turn reads it
	read  sync.Once
	in    io.Reader
}

// shown is what a person has seen of a session.
type shown struct {
	messages int
	system   [sha256.Size]byte
}

type line struct {
	text string
	err  error
}

var _ llm.Adapter = (*Adapter)(nil)

// New returns an adapter that reads what is typed from in and writes to out. The
// first request starts a goroutine that reads in; Close ends it, after the line
// it is waiting for, since a read of a terminal cannot be interrupted.
func New(in io.Reader, out io.Writer) *Adapter {
	a := &Adapter{in: in, out: out, turn: make(chan struct{}, 1), lines: make(chan line), stop: make(chan struct{}), shown: map[string]shown{}}
	a.turn <- struct{}{}
	return a
}

// Close ends the reading. Requests under way and later ones fail.
func (a *Adapter) Close() error {
	a.once.Do(func() { close(a.stop) })
	return nil
}

func (a *Adapter) reader() {
	defer close(a.lines)
	s := bufio.NewScanner(a.in)
	s.Buffer(nil, limits.LLMTyped)
	for s.Scan() {
		if !a.pass(line{text: s.Text()}) {
			return
		}
	}
	err := s.Err()
	if err == nil {
		err = io.EOF
	}
	a.pass(line{err: err})
}

func (a *Adapter) pass(l line) bool {
	select {
	case a.lines <- l:
		return true
	case <-a.stop:
		return false
	}
}

// Models returns the one model there is.
func (a *Adapter) Models() []llm.Model { return []llm.Model{{Name: "person"}} }

// Model takes any name.
func (a *Adapter) Model(name string) (llm.Model, error) { return llm.Model{Name: name}, nil }

// Encode returns the request as JSON, all of it.
func (a *Adapter) Encode(r *llm.Request) ([]byte, error) { return r.JSON() }

// Stream shows the request and reads the answer.
func (a *Adapter) Stream(ctx context.Context, r *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		e := llm.NewEmitter(yield)
		select {
		case <-a.turn:
			defer func() { a.turn <- struct{}{} }()
		case <-ctx.Done():
			e.Fail(llm.AsFailure(ctx.Err(), llm.CodeAborted))
			return
		case <-a.stop:
			e.Fail(llm.Fail(llm.CodeAborted, "nobody plays the model any more"))
			return
		}
		a.read.Do(func() { go a.reader() })
		a.show(r)
		a.answer(ctx, e, r)
	}
}

func (a *Adapter) answer(ctx context.Context, e *llm.Emitter, r *llm.Request) {
	p := &person{e: e, a: a, r: r, text: -1}
	for !e.Done() {
		select {
		case l, ok := <-a.lines:
			switch {
			case !ok || errors.Is(l.err, io.EOF):
				e.Fail(llm.Fail(llm.CodeAborted, "the input ended in the middle of the answer"))
			case l.err != nil:
				e.Fail(llm.Fail(llm.CodeTransport, "what was typed cannot be read: %v", l.err))
			default:
				p.line(l.text)
			}
		case <-ctx.Done():
			e.Fail(llm.AsFailure(ctx.Err(), llm.CodeAborted))
		case <-a.stop:
			e.Fail(llm.Fail(llm.CodeAborted, "nobody plays the model any more"))
		}
	}
}

// person is the answer under way.
type person struct {
	e     *llm.Emitter
	a     *Adapter
	r     *llm.Request
	text  int
	calls int
}

func (p *person) line(s string) {
	if s == "." {
		p.e.Finish(llm.Stop, lossless.Value{})
		return
	}
	if !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") {
		p.say(strings.TrimPrefix(s, "/"))
		return
	}
	command, rest, _ := strings.Cut(s, " ")
	rest = strings.TrimSpace(rest)
	switch command {
	case "/call":
		name, arguments, _ := strings.Cut(rest, " ")
		if name == "" {
			p.a.printf("Name the tool: /call NAME {\"json\": \"arguments\"}\n")
			return
		}
		p.calls++
		b := p.e.Open(llm.CallBlock)
		p.e.Call(b, fmt.Sprintf("call_%d_%d", len(p.r.Messages), p.calls), name, strings.TrimSpace(arguments))
		p.text = -1
	case "/think":
		b := p.e.Open(llm.ReasoningBlock)
		p.e.Append(b, rest)
		p.text = -1
	case "/max":
		p.e.Finish(llm.MaxTokens, lossless.Value{})
	case "/fail":
		code, message, _ := strings.Cut(rest, " ")
		if code == "" {
			code = llm.CodeServer
		}
		p.e.Fail(llm.Fail(code, "%s", message))
	case "/tools":
		p.tools(rest)
	default:
		p.a.printf("%s", help)
	}
}

const help = `Type the answer; a line that is only a dot ends it.
/call NAME {"json": "arguments"}   calls a tool
/think TEXT   is reasoning
/max   ends the answer as cut
/fail CODE MESSAGE   fails the request
/tools   shows the tools; /tools NAME one whole
`

// tools shows the tool of that name whole, or the beginning of each.
func (p *person) tools(name string) {
	found := name == ""
	for _, t := range p.r.Tools {
		switch name {
		case "":
			p.a.printf("%s %s\n  %s\n", t.Name, t.Parameters, plain.Cut(t.Description, 500))
		case t.Name:
			p.a.printf("%s\n%s\n%s\n", t.Name, t.Description, t.Parameters)
			found = true
		}
	}
	if !found {
		p.a.printf("There is no tool %q in this request: %s\n", plain.Line(name, limits.Name), names(p.r.Tools))
	}
}

func names(tools []llm.Tool) string {
	list := make([]string, len(tools))
	for i, t := range tools {
		list[i] = t.Name
	}
	return strings.Join(list, ", ")
}

func (p *person) say(s string) {
	if p.text < 0 {
		p.text = p.e.Open(llm.TextBlock)
	} else {
		s = "\n" + s
	}
	p.e.Append(p.text, s)
}

// show writes what is new in the request since the last one of the session.
func (a *Adapter) show(r *llm.Request) {
	before, system := a.shown[r.Session], sha256.Sum256([]byte(r.System))
	from := before.messages
	if len(a.shown) >= limits.LLMSessions {
		clear(a.shown)
	}
	if from > len(r.Messages) || r.Purpose != "" {
		from = 0
	}
	if r.Purpose == "" {
		a.shown[r.Session] = shown{len(r.Messages), system}
	}
	switch {
	case from == 0 && r.System != "":
		a.printf("── system\n%s\n", r.System)
	case from > 0 && system != before.system:
		a.printf("── system, which has changed\n%s\n", r.System)
	}
	for _, m := range r.Messages[from:] {
		if m.Role == llm.Assistant {
			continue // they typed it
		}
		for _, b := range m.Content {
			switch b.Type {
			case llm.ResultBlock:
				a.printf("── result of %s\n%s\n", b.CallID, llm.JoinText(b.Content))
			case llm.TextBlock:
				a.printf("── %s\n%s\n", m.Source.Kind, b.Text)
			}
		}
	}
	a.printf("── you are the model (tools: %s; a dot ends, /help)\n", names(r.Tools))
}

func (a *Adapter) printf(format string, args ...any) {
	_, _ = io.WriteString(a.out, plain.Terminal(fmt.Sprintf(format, args...))) // their terminal has nowhere to report its loss
}
