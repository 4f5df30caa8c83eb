package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// TestBadFrames: each is answered, and the connection goes on.
func TestBadFrames(t *testing.T) {
	f := newFixture(t, Config{}, echoTool())
	tests := []struct{ name, line, want string }{
		{"not_json", `{nonsense`, `"id":null,"error":{"code":-32700`},
		{"too_deep", nested("41", limits.MCPDepth+1), `"id":41,"error":{"code":-32600`},
		{"too_long", `{"jsonrpc":"2.0","id":42,"method":"ping","params":{"x":"` + strings.Repeat("x", limits.MCPFrame) + `"}}`, `"id":42,"error":{"code":-32600`},
		{"batch", `[]`, `"id":null,"error":{"code":-32600`},
		{"empty_object", `{}`, `"id":null,"error":{"code":-32600`},
		{"unknown_method", `{"jsonrpc":"2.0","id":43,"method":"no/such"}`, `"code":-32601`},
		{"call_without_params", `{"jsonrpc":"2.0","id":44,"method":"tools/call"}`, `"id":44,"error"`},
		{"bad_cursor", `{"jsonrpc":"2.0","id":45,"method":"tools/list","params":{"cursor":"x"}}`, `"code":-32602`},
	}
	r := f.raw()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r.write(tt.line)
			if got := r.read(); !strings.Contains(got, tt.want) {
				t.Errorf("answer %.300s, want %s in it", got, tt.want)
			}
			r.write(callRaw(1, "echo", `{"text":"still here"}`))
			if got := r.read(); !strings.Contains(got, "still here") {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// TestDuplicateID: an id in use is refused without touching the call that uses it.
func TestDuplicateID(t *testing.T) {
	entered := make(chan struct{})
	release := make(chan struct{})
	wait := define("wait", `{}`, func(context.Context, *tool.Exec) (string, error) {
		entered <- struct{}{}
		<-release
		return "1", nil
	})
	r := newFixture(t, Config{}, wait).raw()
	r.write(callRaw(5, "wait", `{}`))
	<-entered
	r.write(callRaw(5, "wait", `{}`))
	if got := r.read(); !strings.Contains(got, `"id":null`) || !strings.Contains(got, "in use") {
		t.Errorf("answer %s", got)
	}
	close(release)
	if got := r.read(); !strings.Contains(got, `"id":5,"result"`) {
		t.Errorf("answer %s", got)
	}
}

func TestTooManyInFlight(t *testing.T) {
	c := newConn(nil, nil)
	request := func(i int) *jsonrpc.Request {
		id, err := jsonrpc.MakeID(float64(i))
		if err != nil {
			t.Fatal(err)
		}
		return &jsonrpc.Request{ID: id, Method: "tools/call"}
	}
	for i := range maxInFlight {
		if f := c.begin(request(i), 1); f != nil {
			t.Fatalf("request %d: %+v", i, f)
		}
	}
	f := c.begin(request(maxInFlight), 1)
	if f == nil || f.code != codeBusy || string(f.id) != fmt.Sprint(maxInFlight) {
		t.Fatalf("one more: %+v", f)
	}
	c.finish(c.release(request(3).ID))
	if f := c.begin(request(maxInFlight), 1); f != nil {
		t.Errorf("after an answer: %+v", f)
	}
	c = newConn(nil, nil)
	for i := range maxBytesInFlight / limits.MCPFrame {
		if f := c.begin(request(i), limits.MCPFrame); f != nil {
			t.Fatalf("big request %d: %+v", i, f)
		}
	}
	if f := c.begin(request(99), 1); f == nil || f.code != codeBusy {
		t.Errorf("beyond the bytes: %+v", f)
	}
	c.finish(c.release(request(0).ID))
	if f := c.begin(request(99), limits.MCPFrame); f != nil {
		t.Errorf("after an answer: %+v", f)
	}
}

// TestEndOfInput: answers to calls that run when the input ends still arrive.
func TestEndOfInput(t *testing.T) {
	entered := make(chan struct{})
	release := make(chan struct{})
	wait := define("wait", `{}`, func(context.Context, *tool.Exec) (string, error) {
		close(entered)
		<-release
		return "1", nil
	})
	r := newFixture(t, Config{}, wait).raw()
	r.write(callRaw(1, "wait", `{}`))
	<-entered
	r.in.Close()
	close(release)
	if got := r.read(); !strings.Contains(got, `"id":1,"result"`) {
		t.Errorf("answer %s", got)
	}
	if err := r.wait(t); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestShutdown: however a connection ends, Run returns in time and calls are cancelled.
func TestShutdown(t *testing.T) {
	asked := errors.New("asked to stop")
	tests := []struct {
		name string
		end  func(*fixture, *raw)
		want error
	}{
		{"input_ends", func(_ *fixture, r *raw) { r.in.Close() }, nil},
		{"context", func(_ *fixture, r *raw) { r.cancel(asked) }, asked},
		{"plugin_disposed", func(f *fixture, _ *raw) { f.fiber.RequestDispose() }, ErrDetached},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entered, left := make(chan struct{}), make(chan struct{}, 1)
			f := newFixture(t, Config{}, hangTool(entered, left))
			r := f.raw()
			r.write(callRaw(1, "hang", `{}`))
			<-entered
			go io.Copy(io.Discard, r.out)
			began := time.Now()
			tt.end(f, r)
			err := r.wait(t)
			if took := time.Since(began); took > limits.Shutdown {
				t.Errorf("it took %s", took)
			}
			if (tt.want == nil) != (err == nil) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Run: %v, want %v", err, tt.want)
			}
			<-left
		})
	}
}

// TestShutdownStubborn: a call that ignores its context and a client that does
// not read do not hold Run up.
func TestShutdownStubborn(t *testing.T) {
	entered := make(chan struct{})
	release := make(chan struct{})
	stubborn := define("stubborn", `{}`, func(context.Context, *tool.Exec) (string, error) {
		entered <- struct{}{}
		<-release
		return "1", nil
	})
	r := newFixture(t, Config{}, stubborn, echoTool()).raw()
	defer close(release)
	r.write(callRaw(1, "stubborn", `{}`))
	<-entered
	r.write(callRaw(2, "echo", `{}`)) // its answer is never read
	began := time.Now()
	r.cancel(errors.New("enough"))
	err := r.wait(t)
	if took := time.Since(began); took > limits.Shutdown || err == nil {
		t.Errorf("Run returned %v after %s", err, took)
	}
}

// TestWriteFails: a client that closes its end ends the connection.
func TestWriteFails(t *testing.T) {
	r := newFixture(t, Config{}, echoTool()).raw()
	r.out.Close()
	r.write(callRaw(1, "echo", `{}`))
	if err := r.wait(t); err == nil {
		t.Error("Run: no error, want that of the write")
	}
}

func TestDetached(t *testing.T) {
	err := New(Config{}).Run(t.Context(), io.NopCloser(strings.NewReader("")), nil)
	if !errors.Is(err, ErrDetached) {
		t.Errorf("Run: %v, want ErrDetached", err)
	}
}
