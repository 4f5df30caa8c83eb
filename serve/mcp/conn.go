package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dsh-go/dsh/limits"
)

// maxInFlight and maxBytesInFlight are how many requests may wait for their
// answers, and of how many bytes together.
const (
	maxInFlight      = 1024
	maxBytesInFlight = 4 * limits.MCPFrame
)

// methodListen is a request that is answered only when the client ends it.
const methodListen = "subscriptions/listen"

// conn is the thin transport in front of the SDK: it passes on messages and
// answers what is none. One goroutine reads; it ends when the input does or the
// connection is closed, whichever makes its read return.
type conn struct {
	in  io.ReadCloser
	out io.WriteCloser

	messages chan jsonrpc.Message // from the reading goroutine
	ended    chan struct{}        // closed when the input has ended
	stopped  chan struct{}        // closed by stop and Close: Read returns io.EOF
	stopOnce sync.Once
	shut     sync.Once
	shutErr  error

	writing sync.Mutex // one frame at a time

	mu    sync.Mutex
	open  map[jsonrpc.ID]int // the size of each request whose answer is not on its way
	count int                // of requests whose answer is not sent
	size  int                // of all of them
	idle  chan struct{}      // closed while count is 0
}

var (
	_ sdk.Transport  = (*conn)(nil)
	_ sdk.Connection = (*conn)(nil)
)

func newConn(in io.ReadCloser, out io.WriteCloser) *conn {
	c := &conn{
		in:       in,
		out:      out,
		messages: make(chan jsonrpc.Message),
		ended:    make(chan struct{}),
		stopped:  make(chan struct{}),
		open:     map[jsonrpc.ID]int{},
		idle:     make(chan struct{}),
	}
	close(c.idle)
	return c
}

// Connect starts reading. It is called once.
func (c *conn) Connect(context.Context) (sdk.Connection, error) {
	go c.readAll()
	return c, nil
}

// SessionID is empty: a stream has one session.
func (c *conn) SessionID() string { return "" }

func (c *conn) readAll() {
	defer close(c.ended)
	frames := newFrameReader(c.in, limits.MCPFrame)
	for {
		line, long, err := frames.next()
		if err != nil {
			return
		}
		msg, f := decode(line, long)
		if f == nil {
			f = c.begin(msg, len(line))
		}
		if f != nil {
			if c.refuse(f) != nil {
				return
			}
			continue
		}
		select {
		case c.messages <- msg:
		case <-c.stopped:
			return
		}
	}
}

// begin notes a request as open before anything else sees it, so that idle is
// never read too early.
func (c *conn) begin(msg jsonrpc.Message, size int) *fault {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() || req.Method == methodListen {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[req.ID] > 0 {
		return &fault{codeInvalid, fmt.Sprintf("request id %v is in use by a request without an answer yet", req.ID.Raw()), nil}
	}
	if c.count >= maxInFlight || c.size+size > maxBytesInFlight {
		id, _ := json.Marshal(req.ID.Raw()) // a string or an integer
		return &fault{codeBusy, fmt.Sprintf("%d requests of %d bytes are in flight; wait for answers (the limits are %d and %d)",
			c.count, c.size, maxInFlight, maxBytesInFlight), id}
	}
	if c.count == 0 {
		c.idle = make(chan struct{})
	}
	c.open[req.ID] = size
	c.count++
	c.size += size
	return nil
}

// release frees a request's id, before its answer is sent: a client may use
// the id again as soon as it has read the answer. The request counts against
// the limits until its size is given to finish.
func (c *conn) release(id jsonrpc.ID) (size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size = c.open[id]
	delete(c.open, id)
	return size
}

// finish counts a request as answered; 0 is the size of none.
func (c *conn) finish(size int) {
	if size == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count--
	c.size -= size
	if c.count == 0 {
		close(c.idle)
	}
}

// waitIdle waits until no request is open, at most for d or until done.
func (c *conn) waitIdle(d time.Duration, done <-chan struct{}) {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-done:
	}
}

// Read returns the next message for the SDK.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.messages:
		return msg, nil
	case <-c.stopped:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message of the SDK. An answer that no client would take is
// replaced by an error that says so.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	resp, isResponse := msg.(*jsonrpc.Response)
	if isResponse && len(data) > limits.MCPFrame {
		data, err = jsonrpc.EncodeMessage(&jsonrpc.Response{ID: resp.ID, Error: &jsonrpc.Error{
			Code:    jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("the answer has %d bytes; a message has at most %d", len(data), limits.MCPFrame),
		}})
		if err != nil {
			return fmt.Errorf("encode message: %w", err)
		}
	}
	if isResponse {
		defer c.finish(c.release(resp.ID))
	}
	return c.send(data)
}

// refuse answers a frame that the SDK never sees.
func (c *conn) refuse(f *fault) error {
	id := f.id
	if id == nil {
		id = json.RawMessage("null")
	}
	data, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{"2.0", id, map[string]any{"code": f.code, "message": f.message}})
	if err != nil {
		return fmt.Errorf("encode refusal: %w", err)
	}
	return c.send(data)
}

func (c *conn) send(data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// stop makes Read report the end of the input, upon which the SDK cancels what
// is open and lets go of the connection.
func (c *conn) stop() { c.stopOnce.Do(func() { close(c.stopped) }) }

// Close closes both streams. A read that does not return when its stream is
// closed keeps its goroutine.
func (c *conn) Close() error {
	c.stop()
	c.shut.Do(func() {
		c.shutErr = c.in.Close()
		if err := c.out.Close(); c.shutErr == nil {
			c.shutErr = err
		}
	})
	return c.shutErr
}
