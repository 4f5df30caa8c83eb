// Package sse sends one request to a model's server and reads the stream of
// events that answers it, for the adapters that speak HTTP.
//
// The events themselves are parsed by a library. This package adds what servers
// of models need beyond it: an answer that is one JSON text instead of a stream,
// lines that say "error: …" or are bare JSON, a last event without its blank
// line, an idle timeout in place of a total one, bounds, and failures with codes.
// A server may say the key in any of them: llm.Emitter.Hide takes it out.
package sse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	gosse "github.com/tmaxmax/go-sse"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
)

// Post is a request to a server.
type Post struct {
	URL    string
	Header http.Header
	Body   []byte
	Client *http.Client  // nil is a client of this package
	Idle   time.Duration // without a byte; 0 is limits.LLMIdle

	limit int64 // bytes of the answer; 0 is limits.LLMAnswer
}

// Event is one event of the stream, or the whole answer.
type Event struct {
	Type string // the event's name, often ""
	Data []byte
	// Whole says that the answer was no stream: Data is all of it.
	Whole bool
	// Last says that the stream ended with this event and did not end it: what
	// does not parse was cut.
	Last bool
	// RequestID is by which the provider knows the request, "" when it does not say.
	RequestID string
}

// ErrStalled is the cause of a request that the idle timeout ended.
var ErrStalled = errors.New("no byte within the idle timeout")

// client follows no redirect: a key must not travel to where nobody sent it.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Do sends the request and calls each for every event until it returns false.
// The failure is nil when the stream ended, or each said so. A server's refusal
// comes as what Refused makes of it. The connection is released when Do returns.
func (p Post) Do(ctx context.Context, each func(Event) bool) *llm.Failure {
	idle := p.Idle
	if idle <= 0 {
		idle = limits.LLMIdle
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(idle, func() { cancel(ErrStalled) })
	defer timer.Stop()
	f := p.do(ctx, timer, idle, each)
	if f != nil && errors.Is(context.Cause(ctx), ErrStalled) {
		f = llm.Fail(llm.CodeTimeout, "the server sent nothing for %v", idle)
	}
	return f
}

func (p Post) do(ctx context.Context, timer *time.Timer, idle time.Duration, each func(Event) bool) *llm.Failure {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return llm.Fail(llm.CodeInvalidRequest, "the base URL is not usable; it must look like https://host/path")
	}
	for k, v := range p.Header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	c := p.Client
	if c == nil {
		c = client
	}
	res, err := c.Do(req)
	timer.Stop()
	if err != nil {
		return transport(req.URL.Host, err)
	}
	defer func() { _ = res.Body.Close() }()
	limit := p.limit
	if limit == 0 {
		limit = limits.LLMAnswer
	}
	body := &watched{r: io.LimitReader(res.Body, limit+1), timer: timer, idle: idle}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(body, limits.LLMError)) // what came is all there is to tell
		f := Refused(res.StatusCode, res.Header, text)
		if res.StatusCode < 400 {
			f.Message = redirected(req.URL.Host, res)
		}
		return f
	}
	id := requestID(res.Header)
	f := read(req.URL.Host, body, limits.LLMEvent, func(ev Event) bool {
		ev.RequestID = id
		return each(ev)
	})
	if body.n > limit {
		return llm.Fail(llm.CodeMalformed, "the answer has more than %d bytes", limit)
	}
	if f != nil {
		f.RequestID = id
	}
	return f
}

// Read reads the body of an answer and calls each for every event.
func Read(body io.Reader, each func(Event) bool) *llm.Failure {
	return read("", body, limits.LLMEvent, each)
}

// read is Read of an answer of the host, if that is known.
func read(host string, body io.Reader, limit int, each func(Event) bool) *llm.Failure {
	r := bufio.NewReaderSize(body, 16<<10)
	if bom, err := r.Peek(3); err == nil && string(bom) == "\ufeff" {
		_, _ = r.Discard(3) // was peeked
	}
	first, err := skipSpace(r)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return transport("", err)
	}
	if first == '<' { // neither an event nor JSON begins so
		return llm.Fail(llm.CodeMalformed, "the server%s answered with a web page, so this is not the address of its API: check the base URL", after(host))
	}
	if first == '{' || first == '[' {
		whole, err := io.ReadAll(r)
		if err != nil {
			return transport("", err)
		}
		each(Event{Data: whole, Whole: true})
		return nil
	}
	events := &eventReader{r: r, limit: limit}
	for ev, err := range gosse.Read(events, &gosse.ReadConfig{MaxEventSize: limit + 64}) {
		if errors.Is(err, bufio.ErrTooLong) {
			return llm.Fail(llm.CodeMalformed, "an event of the answer has more than %d bytes", limit)
		}
		if err != nil {
			return transport("", err)
		}
		data := strings.TrimSpace(ev.Data)
		if data == "" || data[0] == ':' { // a heartbeat, or a comment that a proxy sent as data
			continue
		}
		if !each(Event{Type: ev.Type, Data: []byte(data), Last: events.ended}) {
			return nil
		}
	}
	return nil
}

// skipSpace drops white space and returns the byte after it without taking it.
func skipSpace(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b, r.UnreadByte()
		}
	}
}

// watched counts the bytes, and lets the idle timer run while it waits for some:
// what the reader of the stream does meanwhile takes as long as it likes.
type watched struct {
	r     io.Reader
	n     int64
	timer *time.Timer
	idle  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	n, err := w.r.Read(p)
	w.timer.Stop()
	w.n += int64(n)
	return n, err
}

// eventReader hands the parser whole events: it looks at the beginning of an
// event again with every read, so pieces of a long one would cost quadratic time.
// Lines that begin with "error:" or with a brace become an event of their own,
// and at the end there is always a blank line.
type eventReader struct {
	r     *bufio.Reader
	limit int // bytes of an event
	event []byte
	rest  []byte // of event, not handed out yet
	prev  byte
	ended bool
}

func (e *eventReader) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.ended {
			return 0, io.EOF
		}
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// next reads up to and with the next blank line. Lines end with LF, CR or both.
func (e *eventReader) next() error {
	e.event = e.event[:0]
	start := 0
	for {
		b, err := e.r.ReadByte()
		if errors.Is(err, io.EOF) {
			e.ended = true
			e.line(start)
			e.event = append(e.event, "\n\n"...)
			break
		}
		if err != nil {
			return err
		}
		if len(e.event) > e.limit {
			return bufio.ErrTooLong
		}
		joined := b == '\n' && e.prev == '\r' // one line end of two bytes
		e.prev = b
		if (b == '\n' || b == '\r') && !joined {
			blank := len(e.event) == start
			e.line(start)
			e.event = append(e.event, b)
			if blank {
				break
			}
			start = len(e.event)
			continue
		}
		e.event = append(e.event, b)
		if joined {
			start = len(e.event)
		}
	}
	e.rest = e.event
	return nil
}

// line rewrites the line that begins at start where servers leave the protocol.
func (e *eventReader) line(start int) {
	var begin, cut string
	switch line := e.event[start:]; {
	case bytes.HasPrefix(line, []byte("error:")):
		begin, cut = "event: error\ndata:", "error:"
	case len(line) > 0 && line[0] == '{':
		begin = "data:"
	default:
		return
	}
	rest := bytes.Clone(e.event[start+len(cut):])
	e.event = append(append(e.event[:start], begin...), rest...)
}

// transport makes a failure of an error of the network. No URL is in it.
func transport(host string, err error) *llm.Failure {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return llm.AsFailure(err, llm.CodeTransport)
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return llm.Fail(llm.CodeTransport, "the server %s has no address: %s", host, dns.Err)
	case host == "":
		return llm.Fail(llm.CodeStreamClosed, "the connection broke in the middle of the answer: %v", err)
	}
	return llm.Fail(llm.CodeTransport, "the server %s cannot be reached: %v", host, err)
}
