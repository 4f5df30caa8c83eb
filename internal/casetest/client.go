package casetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Client is a minimal MCP client of one program: it writes requests as they are
// given, byte for byte, and matches answers by id. Its reading goroutine ends
// with the program's output.
type Client struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr lockedBuffer
	began  time.Time
	read   chan struct{} // closed when the output has ended

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	notes   []string // methods of notifications, in order
	fault   error    // output that is no protocol
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Answer is what became of a call.
type Answer struct {
	IsError    bool
	Text       string // the text blocks, joined by line ends
	Structured json.RawMessage
	Took       time.Duration
}

// Start runs the program with the arguments and shakes hands. Its standard
// error is kept for Stderr.
func Start(ctx context.Context, program string, args ...string) (*Client, error) {
	c := &Client{
		cmd:     exec.CommandContext(ctx, program, args...),
		read:    make(chan struct{}),
		waiting: map[int]chan reply{},
	}
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c.cmd.Stderr = &c.stderr
	c.began = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go c.readAll(stdout)
	_, err = c.Request(ctx, "initialize", json.RawMessage(
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"casetest","version":"1"}}`))
	if err == nil {
		err = c.Write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shake hands: %w", err), c.Kill())
	}
	return c, nil
}

func (c *Client) readAll(r io.Reader) {
	defer close(c.read)
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			c.take(line)
		}
		if err != nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.waiting {
		close(ch)
	}
	c.waiting = nil
}

func (c *Client) take(line []byte) {
	var msg struct {
		Version string `json:"jsonrpc"`
		ID      *int   `json:"id"`
		Method  string `json:"method"`
		reply
	}
	err := json.Unmarshal(line, &msg)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil || msg.Version != "2.0":
		c.fault = errors.Join(c.fault, fmt.Errorf("standard output has a line that is no JSON-RPC: %.200q", line))
	case msg.Method != "":
		c.notes = append(c.notes, msg.Method)
	case msg.ID != nil && c.waiting[*msg.ID] != nil:
		c.waiting[*msg.ID] <- msg.reply // holds one
		delete(c.waiting, *msg.ID)
	case msg.ID == nil && msg.Error != nil && len(c.waiting) == 1:
		// A frame that was refused before its id was known: it can only be this one.
		for id, ch := range c.waiting {
			ch <- msg.reply
			delete(c.waiting, id)
		}
	default:
		c.fault = errors.Join(c.fault, fmt.Errorf("an answer to no request: %.200q", line))
	}
}

// Write sends one line as it is.
func (c *Client) Write(line string) error {
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		return fmt.Errorf("write to program: %w", err)
	}
	return nil
}

// Send sends a request and returns how to wait for its answer.
func (c *Client) Send(method string, params json.RawMessage) (wait func(context.Context) (json.RawMessage, error), err error) {
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	if c.waiting == nil {
		c.mu.Unlock()
		return nil, errors.New("send request: the program has closed its output")
	}
	c.waiting[id] = ch
	c.mu.Unlock()
	if err := c.Write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		select {
		case r, ok := <-ch:
			if !ok {
				return nil, fmt.Errorf("await %s: the program closed its output", method)
			}
			if r.Error != nil {
				return nil, &rpcError{r.Error.Code, r.Error.Message}
			}
			return r.Result, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("await %s: %w", method, ctx.Err())
		}
	}, nil
}

// rpcError is a JSON-RPC error that the program answered with.
type rpcError struct {
	code    int
	message string
}

func (e *rpcError) Error() string { return e.message }

// Request sends a request and waits for its answer.
func (c *Client) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	wait, err := c.Send(method, params)
	if err != nil {
		return nil, err
	}
	return wait(ctx)
}

// Call sends a tool call and returns how to wait for its answer. The time in the
// answer counts from here.
func (c *Client) Call(tool string, args json.RawMessage) (wait func(context.Context) (Answer, error), err error) {
	name, err := json.Marshal(tool)
	if err != nil {
		return nil, fmt.Errorf("encode tool name: %w", err)
	}
	began := time.Now()
	await, err := c.Send("tools/call", json.RawMessage(fmt.Sprintf(`{"name":%s,"arguments":%s}`, name, args)))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Answer, error) {
		result, err := await(ctx)
		took := time.Since(began)
		var refused *rpcError
		if errors.As(err, &refused) {
			return Answer{IsError: true, Text: refused.message, Took: took}, nil
		}
		if err != nil {
			return Answer{}, err
		}
		answer, err := readAnswer(result)
		answer.Took = took
		return answer, err
	}, nil
}

func readAnswer(result json.RawMessage) (Answer, error) {
	var r struct {
		IsError           bool            `json:"isError"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct{ Type, Text string }
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	var texts []string
	for _, b := range r.Content {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return Answer{IsError: r.IsError, Text: strings.Join(texts, "\n"), Structured: r.StructuredContent}, nil
}

// Tools lists the names of the tools, in the order of the answer.
func (c *Client) Tools(ctx context.Context) ([]string, error) {
	result, err := c.Request(ctx, "tools/list", json.RawMessage("{}"))
	if err != nil {
		return nil, err
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &list); err != nil {
		return nil, fmt.Errorf("read tool list: %w", err)
	}
	names := make([]string, len(list.Tools))
	for i, t := range list.Tools {
		names[i] = t.Name
	}
	return names, nil
}

// Close closes the program's input and waits for its end, which has to be in
// order and in time.
func (c *Client) Close(limit time.Duration) error {
	return c.end(limit, c.stdin.Close)
}

// Signal sends the program a signal, keeps its input open, and waits for its
// end, which has to be in order and in time.
func (c *Client) Signal(s os.Signal, limit time.Duration) error {
	return c.end(limit, func() error { return c.cmd.Process.Signal(s) })
}

func (c *Client) end(limit time.Duration, ask func() error) error {
	began := time.Now()
	if err := ask(); err != nil {
		return errors.Join(fmt.Errorf("end program: %w", err), c.Kill())
	}
	timer := time.AfterFunc(limit, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	<-c.read
	err := c.cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("the program ended %s after it was asked to with %w", time.Since(began).Round(time.Millisecond), err)
	}
	return errors.Join(err, c.fault)
}

// Kill ends the program at once.
func (c *Client) Kill() error {
	err := c.cmd.Process.Kill()
	<-c.read
	_ = c.cmd.Wait() // it was killed, which is no news
	if err != nil {
		return fmt.Errorf("kill program: %w", err)
	}
	return nil
}

// Age is the time since the program was started.
func (c *Client) Age() time.Duration { return time.Since(c.began) }

// Stderr is what the program has written to its standard error so far.
func (c *Client) Stderr() string { return c.stderr.String() }

// lockedBuffer keeps the last part of what is written to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

const keptStderr = 64 << 10

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	if over := len(l.b) - keptStderr; over > 0 {
		l.b = append([]byte(nil), l.b[over:]...)
	}
	return len(p), nil
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}
