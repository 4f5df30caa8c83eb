package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Columns is how wide the transcript is at most.
const Columns = 100

// Waits of the demonstration. It takes about a second.
const (
	timeLimit = 30 * time.Second // for the whole, on a machine that is busy
	endLimit  = 5 * time.Second  // for the server to end
)

// Serve serves one connection until its input ends, as dsh mcp does with
// standard input and output, and returns when everything has ended.
type Serve func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error

// Run plays the demonstration against serve, whose limit for one entry into
// mounted code has to be [VMTimeout], and writes the transcript to out. The
// error is the first answer that was not what the transcript says.
func Run(ctx context.Context, out io.Writer, serve Serve) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	started := time.Now()
	in, toServer := io.Pipe()
	fromServer, answers := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := serve(ctx, in, answers)
		_ = in.CloseWithError(io.ErrClosedPipe)
		_ = answers.CloseWithError(io.EOF)
		served <- err
	}()
	p := &player{out: newPrinter(out), changed: make(chan struct{}, 1)}
	err := p.play(ctx, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
	_ = toServer.Close() // the end of the input ends the server; the client reads until then
	select {
	case failed := <-served:
		err = errors.Join(err, failed)
	case <-time.After(endLimit):
		err = errors.Join(err, errors.New("end server: it goes on after its client has gone"))
	}
	_ = fromServer.Close()
	if p.session != nil {
		_ = p.session.Close() // its streams have ended, and how is told by the server
	}
	if err != nil {
		return err
	}
	p.out.line("")
	p.out.text("", fmt.Sprintf("The server and its worker have ended. %d answers, each checked, in %.1f s.", p.answers, time.Since(started).Seconds()))
	return p.out.err
}

// player drives one client.
type player struct {
	out     *printer
	session *sdk.ClientSession
	changed chan struct{} // the server said that the list of tools changed
	answers int
}

func (p *player) play(ctx context.Context, t sdk.Transport) error {
	client := sdk.NewClient(&sdk.Implementation{Name: "dsh-demo", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case p.changed <- struct{}{}:
			default: // it is known already
			}
		},
	})
	session, err := client.Connect(ctx, t, nil)
	if err != nil {
		return fmt.Errorf("connect to server: %w", err)
	}
	p.session = session
	p.out.text("", "An MCP client talks to dsh as an agent does. Lines after > are what it asks, lines after | what it is answered, "+
		"left out where they say …. The plugins are JavaScript and run in a worker process.")
	for i, s := range script {
		p.out.line("")
		p.out.line(fmt.Sprintf("%d. %s", i+1, s.title))
		for _, a := range s.acts {
			if err := p.act(ctx, a); err != nil {
				return fmt.Errorf("step %d (%s): %w", i+1, s.title, err)
			}
		}
	}
	return nil
}

// act prints what is asked, asks, prints the answer and checks it.
func (p *player) act(ctx context.Context, a act) error {
	p.out.line("")
	if a.say != "" {
		p.out.text("   ", a.say)
		p.out.line("")
	}
	if a.tool == "" {
		return p.list(ctx, a)
	}
	args, err := a.arguments()
	if err != nil {
		return err
	}
	p.out.ask(a)
	begun := time.Now()
	answers := p.start(ctx, a.tool, args)
	if a.during != nil {
		if err := p.meanwhile(ctx, *a.during, answers); err != nil {
			return err
		}
	}
	got := <-answers
	if got.err != nil {
		return got.err
	}
	p.answers++
	p.out.answer(got.text)
	if took := time.Since(begun); took < a.atLeast {
		return fmt.Errorf("%s took %s, at least %s were announced", a.tool, took, a.atLeast)
	}
	return a.check(got)
}

// answer is what a call brought back.
type answer struct {
	text    string
	isError bool
	err     error // there is no answer
}

// start begins a call; its one answer can be received.
func (p *player) start(ctx context.Context, tool string, args map[string]any) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		res, err := p.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			done <- answer{err: fmt.Errorf("call %s: %w", tool, err)}
			return
		}
		var texts []string
		for _, c := range res.Content {
			if t, ok := c.(*sdk.TextContent); ok {
				texts = append(texts, t.Text)
			}
		}
		done <- answer{text: strings.Join(texts, "\n"), isError: res.IsError}
	}()
	return done
}

// meanwhile makes a call while another runs, which must not have ended first.
func (p *player) meanwhile(ctx context.Context, a act, other <-chan answer) error {
	args, err := a.arguments()
	if err != nil {
		return err
	}
	begun := time.Now()
	got := <-p.start(ctx, a.tool, args)
	took := time.Since(begun)
	if got.err != nil {
		return got.err
	}
	if len(other) > 0 {
		return fmt.Errorf("%s was held up by another plugin", a.tool)
	}
	p.answers++
	p.out.line(fmt.Sprintf("   (meanwhile %s answered in %d ms: %s)", a.tool, took.Milliseconds(), got.text))
	return a.check(got)
}

// list shows what the client can call now.
func (p *player) list(ctx context.Context, a act) error {
	if a.told {
		select {
		case <-p.changed:
			p.out.line("   | notifications/tools/list_changed")
		case <-ctx.Done():
			return fmt.Errorf("wait for notifications/tools/list_changed: %w", ctx.Err())
		}
	}
	p.out.line("   > tools/list")
	res, err := p.session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	var names []string
	for _, t := range res.Tools {
		names = append(names, t.Name)
	}
	p.answers++
	p.out.answer(strings.Join(names, ", "))
	if !slices.Equal(names, a.only) {
		return fmt.Errorf("tools/list has %s, announced were %s", strings.Join(names, ", "), strings.Join(a.only, ", "))
	}
	return nil
}

// arguments are what the call is sent with.
func (a act) arguments() (map[string]any, error) {
	switch {
	case a.plugin != "":
		code, err := source(a.plugin)
		return map[string]any{"code": code}, err
	case a.text:
		return map[string]any{"text": readme}, nil
	case a.args == nil:
		return map[string]any{}, nil
	}
	return a.args, nil
}

// source is the code of a plugin.
func source(name string) (string, error) {
	code, err := plugins.ReadFile(path.Join("plugins", name+".js"))
	if err != nil {
		return "", fmt.Errorf("read plugin: %w", err)
	}
	return strings.TrimRight(string(code), "\n"), nil
}

func (a act) check(got answer) error {
	if got.isError != a.fails {
		return fmt.Errorf("%s answered with isError %t, announced was %t: %s", a.tool, got.isError, a.fails, got.text)
	}
	for _, want := range a.has {
		if !strings.Contains(got.text, want) {
			return fmt.Errorf("%s answered without %q: %s", a.tool, want, got.text)
		}
	}
	return nil
}
