package mcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/tool"
)

//go:embed instructions.md
var instructions string

// ErrDetached is returned by Run while the server's plugin is not active.
var ErrDetached = errors.New("the server is not attached to a runtime")

// How the time of a shutdown (limits.Shutdown, for the whole program) is spent
// here: on running calls after the input has ended, on calls that were
// cancelled, and on the SDK letting go.
const (
	graceForCalls     = 750 * time.Millisecond
	graceForCancelled = 250 * time.Millisecond
	graceForSession   = 150 * time.Millisecond
)

// Config is what a server can be told. The zero Config is usable.
type Config struct {
	// Version is the program's version for the handshake; "" means dev.
	Version string
	// Instructions is what clients show the model; "" means the text for the
	// self-modification toolset.
	Instructions string
	// WithCall adds cordis_call {name, args} for clients that ignore list changes.
	WithCall bool
	// Log hears what the SDK has to say; nil means nobody does. It must not
	// write to the stream that is served.
	Log *slog.Logger
}

// Server serves the registry of the runtime that its plugin is mounted in.
type Server struct {
	config   Config
	attached atomic.Pointer[attachment]
}

// attachment is one run of the plugin.
type attachment struct {
	ctx      *cordis.Context
	registry *tool.Registry
}

// New returns a server that is not attached yet.
func New(c Config) *Server {
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Instructions == "" {
		c.Instructions = strings.TrimSpace(instructions)
	}
	return &Server{config: c}
}

// Plugin returns the plugin that attaches the server to a runtime. It injects
// the tools service and is to be mounted once.
func (s *Server) Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "serve-mcp",
		Inject: cordis.Require(tool.Service.Name()),
		Apply:  func(c *cordis.Context, _ any) error { return s.attach(c) },
	}
}

func (s *Server) attach(c *cordis.Context) error {
	registry, err := tool.Service.Use(c)
	if err != nil {
		return fmt.Errorf("serve mcp: %w", err)
	}
	if s.config.WithCall {
		if err := registerCall(c, registry); err != nil {
			return fmt.Errorf("serve mcp: %w", err)
		}
	}
	a := &attachment{ctx: c, registry: registry}
	_, err = c.Effect("mcp.attach", func(setup *cordis.Setup) error {
		s.attached.Store(a)
		setup.Collect(func(context.Context) error {
			s.attached.CompareAndSwap(a, nil)
			return nil
		})
		return nil
	})
	if err != nil {
		return fmt.Errorf("serve mcp: %w", err)
	}
	return nil
}

// Hidden says which tools are left out of tools/list, and why. They can be
// called all the same.
func (s *Server) Hidden() map[string]string {
	a := s.attached.Load()
	if a == nil {
		return map[string]string{}
	}
	_, hidden := split(a.registry.List(nil))
	return hidden
}

// List is what tools/list answers now, as JSON: {"tools": […]}. The error is
// ErrDetached while the plugin is not active.
func (s *Server) List() (json.RawMessage, error) {
	a := s.attached.Load()
	if a == nil {
		return nil, fmt.Errorf("list tools: %w", ErrDetached)
	}
	shown, _ := split(a.registry.List(nil))
	tools := make([]*sdk.Tool, 0, len(shown))
	for _, v := range shown {
		tools = append(tools, listed(v))
	}
	text, err := json.Marshal(map[string]any{"tools": tools})
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	return text, nil
}

// Run serves one connection and closes both streams when it ends. The error is
// nil when the client ended the input, the context's cause when that was
// cancelled, ErrDetached when the plugin is or becomes inactive.
func (s *Server) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	a := s.attached.Load()
	if a == nil {
		return fmt.Errorf("serve mcp: %w", ErrDetached)
	}
	calls, cancelCalls := context.WithCancel(context.Background())
	defer cancelCalls()

	server := s.newServer(calls, a)
	conn := newConn(in, out)
	defer conn.Close() //nolint:errcheck // both ends belong to the caller, who has no use for them any more
	session, err := server.Connect(ctx, conn, nil)
	if err != nil {
		return fmt.Errorf("serve mcp: %w", err)
	}
	changes, err := watch(a, server)
	if err != nil {
		return fmt.Errorf("serve mcp: %w", err)
	}
	defer changes.close()

	over := make(chan struct{})
	var sessionErr error
	go func() {
		defer close(over)
		sessionErr = session.Wait()
	}()
	var cause error
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-a.ctx.Context().Done():
		cause = ErrDetached
	case <-conn.ended:
		conn.waitIdle(graceForCalls, ctx.Done())
	case <-over:
	}
	cancelCalls()
	conn.waitIdle(graceForCancelled, over)
	conn.stop()
	select {
	case <-over:
		if cause == nil && sessionErr != nil {
			cause = sessionErr
		}
	case <-time.After(graceForSession):
	}
	if cause != nil {
		return fmt.Errorf("serve mcp: %w", cause)
	}
	return nil
}

// newServer returns an SDK server whose tool methods are ours.
func (s *Server) newServer(calls context.Context, a *attachment) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "dsh", Title: "dsh", Version: s.config.Version}, &sdk.ServerOptions{
		Instructions: s.config.Instructions,
		Logger:       s.config.Log,
		// Nil would advertise logging, which nobody sends here.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			switch req := req.(type) {
			case *sdk.ListToolsRequest:
				return list(a.registry, req)
			case *sdk.CallToolRequest:
				return call(ctx, calls, a.registry, req), nil
			}
			return next(ctx, method, req)
		}
	})
	return server
}

// list answers tools/list in one page, in the registry's order.
func list(r *tool.Registry, req *sdk.ListToolsRequest) (sdk.Result, error) {
	if req.Params != nil && req.Params.Cursor != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown cursor: the list has one page"}
	}
	shown, _ := split(r.List(nil))
	out := &sdk.ListToolsResult{
		Tools:     make([]*sdk.Tool, 0, len(shown)),
		Cacheable: sdk.Cacheable{CacheScope: "private"}, // and stale at once: the list is live
	}
	for _, v := range shown {
		out.Tools = append(out.Tools, listed(v))
	}
	return out, nil
}

// call answers tools/call. It ends with the request, or when calls is cancelled.
func call(ctx, calls context.Context, r *tool.Registry, req *sdk.CallToolRequest) sdk.Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(calls, cancel)()

	c := tool.Call{Name: req.Params.Name, Arguments: req.Params.Arguments}
	if string(c.Arguments) == "null" {
		c.Arguments = nil // an optional member that a client spells out
	}
	if token := req.Params.GetProgressToken(); token != nil {
		p := newProgress(ctx, token, req.Session.NotifyProgress)
		defer p.close()
		c.OnProgress = p.report
	}
	v, found := r.Get(c.Name, nil)
	return result(r.Execute(ctx, c), found && structured(v))
}

// watcher tells a session of changed tools.
type watcher struct {
	burst  *burst
	handle *cordis.Handle
}

func watch(a *attachment, server *sdk.Server) (*watcher, error) {
	w := &watcher{burst: newBurst(quietFor, mostFor, func() { notifyChanged(server) })}
	handle, err := tool.Changed.On(a.ctx, func(context.Context, tool.Change) { w.burst.hit() }, cordis.Global())
	if err != nil {
		return nil, fmt.Errorf("watch tools: %w", err)
	}
	w.handle = handle
	return w, nil
}

func (w *watcher) close() {
	w.burst.stop()
	// The handle is an effect of the plugin, which reports what goes wrong with it.
	_ = w.handle.Dispose(context.Background())
}

// notifyChanged makes the SDK tell every session in the way of its protocol
// version. The SDK offers that only as a consequence of a changed tool of its
// own; the middleware keeps this one from being seen.
func notifyChanged(server *sdk.Server) {
	for session := range server.Sessions() {
		if session.InitializeParams() == nil {
			return // nobody has asked yet, so nobody knows an older list
		}
	}
	server.AddTool(&sdk.Tool{Name: "changed", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, errors.New("not a tool")
		})
}
