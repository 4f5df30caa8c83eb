package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a runtime with a registry and an attached server.
type fixture struct {
	t        *testing.T
	root     *cordis.Context
	server   *Server
	fiber    *cordis.Fiber // the server's plugin
	registry *tool.Registry
}

func newFixture(t *testing.T, c Config, tools ...*tool.Definition) *fixture {
	t.Helper()
	f := &fixture{t: t, root: cordis.New(), server: New(c)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := f.root.Fiber().Dispose(ctx); err != nil {
			t.Errorf("dispose runtime: %v", err)
		}
	})
	f.mount(tool.Plugin())
	f.addTools("test-tools", tools...)
	f.fiber = f.mount(f.server.Plugin())
	f.registry = f.server.attached.Load().registry
	return f
}

func (f *fixture) mount(p *cordis.Plugin) *cordis.Fiber {
	f.t.Helper()
	fiber, err := f.root.Mount(p, nil)
	if err == nil {
		err = fiber.Await(f.t.Context())
	}
	if err != nil {
		f.t.Fatalf("mount %s: %v", p.Name, err)
	}
	return fiber
}

// addTools mounts a plugin that registers the tools.
func (f *fixture) addTools(plugin string, tools ...*tool.Definition) *cordis.Fiber {
	f.t.Helper()
	return f.mount(&cordis.Plugin{
		Name:   plugin,
		Inject: cordis.Require("tools"),
		Apply: func(c *cordis.Context, _ any) error {
			r, err := tool.Service.Use(c)
			if err != nil {
				return err
			}
			for _, d := range tools {
				if _, err := r.Register(c, d); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// pipe is a connection to a server that runs.
type pipe struct {
	in     *io.PipeWriter
	out    *io.PipeReader
	cancel context.CancelCauseFunc
	done   chan error
}

func (f *fixture) run() *pipe {
	f.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &pipe{in: inW, out: outR, cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- f.server.Run(ctx, inR, outW) }()
	f.t.Cleanup(func() {
		cancel(nil)
		inW.Close()
		outR.Close()
		select {
		case err := <-p.done:
			p.done <- err
		case <-time.After(5 * time.Second):
			f.t.Error("Run did not end")
		}
	})
	return p
}

// wait returns what Run returned.
func (p *pipe) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(5 * time.Second):
		t.Fatal("Run did not end")
		return nil
	}
}

// client connects the SDK's own client.
func (f *fixture) client(o *sdk.ClientOptions) *sdk.ClientSession {
	f.t.Helper()
	p := f.run()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(f.t.Context(), &sdk.IOTransport{Reader: p.out, Writer: p.in}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { session.Close() })
	return session
}

// raw is a client that writes lines and reads lines.
type raw struct {
	t *testing.T
	*pipe
	lines *bufio.Scanner
}

func (f *fixture) raw() *raw {
	f.t.Helper()
	p := f.run()
	r := &raw{t: f.t, pipe: p, lines: bufio.NewScanner(p.out)}
	r.lines.Buffer(nil, 64<<20)
	r.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	if got := r.read(); !strings.Contains(got, `"serverInfo"`) {
		f.t.Fatalf("handshake: %s", got)
	}
	r.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return r
}

func (r *raw) write(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) read() string {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatalf("the output ended: %v", r.lines.Err())
	}
	return r.lines.Text()
}

// must returns a schema built by Go code.
func must(s *schema.Schema, err error) *schema.Schema {
	if err != nil {
		panic(err)
	}
	return s
}

func parse(text string) lossless.Value {
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

// define returns a tool with open arguments that answers with a JSON value.
func define(name, output string, body func(context.Context, *tool.Exec) (string, error)) *tool.Definition {
	return &tool.Definition{
		Name:        name,
		Description: "for a test",
		Parameters:  must(schema.Parameters(parse(`{"type":"object","properties":{"text":{"type":"string"}}}`))),
		Output: tool.Output{
			Schema: must(schema.Output(parse(output))),
			Render: func(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
				return []tool.Block{tool.TextBlock("value " + string(value))}, nil
			},
		},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			value, err := body(ctx, exec)
			return tool.Outcome{Value: lossless.Text(value)}, err
		},
	}
}

// The tools that most tests use.
func echoTool() *tool.Definition {
	return define("echo", `{"type":"object"}`, func(_ context.Context, e *tool.Exec) (string, error) {
		return string(e.Arguments), nil
	})
}

func textTool() *tool.Definition {
	return define("say", `{"type":"string"}`, func(context.Context, *tool.Exec) (string, error) {
		return `"<hi>"`, nil
	})
}

func failTool() *tool.Definition {
	return define("fail", `{"type":"object"}`, func(context.Context, *tool.Exec) (string, error) {
		return "", errors.New("nothing works")
	})
}

// hangTool says on entered that it runs, and on left that its context ended.
func hangTool(entered, left chan<- struct{}) *tool.Definition {
	return define("hang", `{}`, func(ctx context.Context, _ *tool.Exec) (string, error) {
		entered <- struct{}{}
		<-ctx.Done()
		if left != nil {
			left <- struct{}{}
		}
		return "", context.Cause(ctx)
	})
}

func text(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	var all []string
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			all = append(all, c.Text)
		}
	}
	return strings.Join(all, "\n")
}

func callRaw(id int, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

// member returns one member of a JSON object as text.
func member(t *testing.T, object, key string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatalf("%v in %.200s", err, object)
	}
	return string(m[key])
}
