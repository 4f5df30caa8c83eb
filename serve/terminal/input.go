package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/dsh-go/dsh/limits"
)

// ErrEnded says that nothing more will be typed.
var ErrEnded = errors.New("the input has ended")

// An Input gives the lines that a person types to those who wait for one: a
// question first, else the reader of Typed.
type Input struct {
	in    io.Reader
	start sync.Once

	mu     sync.Mutex
	wanted chan struct{} // closed and made anew when something changes
	asking chan string   // of the question that waits; nil without one
	typed  []string      // lines for Typed
	rest   []byte        // of the line that Typed gives out
	reads  int           // readers of Typed that wait
	err    error         // why there are no more lines
}

// NewInput returns the lines of in.
func NewInput(in io.Reader) *Input { return &Input{in: in, wanted: make(chan struct{})} }

// Line waits for the next line, before anybody else gets it. It returns ErrEnded,
// or the context's error. One caller may wait at a time.
func (i *Input) Line(ctx context.Context) (string, error) {
	answer := make(chan string, 1)
	i.mu.Lock()
	i.asking = answer
	i.changed()
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		i.asking = nil
		i.mu.Unlock()
	}()
	i.start.Do(func() { go i.read() })
	for {
		i.mu.Lock()
		err, changed := i.err, i.wanted
		i.mu.Unlock()
		select {
		case text := <-answer:
			return text, nil
		default:
		}
		if err != nil {
			return "", err
		}
		select {
		case text := <-answer:
			return text, nil
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// read passes lines on, each when somebody waits for one, until the input ends.
func (i *Input) read() {
	s := bufio.NewScanner(i.in)
	s.Buffer(nil, limits.LLMTyped)
	for i.demand() && s.Scan() {
		i.mu.Lock()
		if i.asking != nil {
			i.asking <- s.Text()
			i.asking = nil
		} else if len(i.typed) < limits.TerminalTyped {
			i.typed = append(i.typed, s.Text())
		}
		i.changed()
		i.mu.Unlock()
	}
	i.fail(s.Err())
}

// demand waits until somebody wants a line, and says whether to go on.
func (i *Input) demand() bool {
	for {
		i.mu.Lock()
		wanted, over, changed := i.asking != nil || i.reads > 0, i.err != nil, i.wanted
		i.mu.Unlock()
		if over || wanted {
			return !over
		}
		<-changed
	}
}

func (i *Input) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err != nil {
		return
	}
	if i.err = err; err == nil {
		i.err = ErrEnded
	}
	i.changed()
}

// Close ends the waiting of all. The stream is its owner's to close.
func (i *Input) Close() error {
	i.fail(ErrEnded)
	return nil
}

// changed wakes whoever waits. The caller has the lock.
func (i *Input) changed() {
	close(i.wanted)
	i.wanted = make(chan struct{})
}

// Typed returns a reader of the lines that answer no question.
func (i *Input) Typed() io.Reader { return (*typed)(i) }

type typed Input

func (t *typed) Read(p []byte) (int, error) {
	t.start.Do(func() { go (*Input)(t).read() })
	for {
		t.mu.Lock()
		if len(t.rest) == 0 && len(t.typed) > 0 {
			t.rest, t.typed = []byte(t.typed[0]+"\n"), t.typed[1:]
		}
		if len(t.rest) > 0 {
			n := copy(p, t.rest)
			t.rest = t.rest[n:]
			t.mu.Unlock()
			return n, nil
		}
		err, changed := t.err, t.wanted
		if err == nil {
			t.reads++
			(*Input)(t).changed()
			changed = t.wanted
		}
		t.mu.Unlock()
		switch {
		case errors.Is(err, ErrEnded):
			return 0, io.EOF
		case err != nil:
			return 0, err
		}
		<-changed
		t.mu.Lock()
		t.reads--
		t.mu.Unlock()
	}
}
