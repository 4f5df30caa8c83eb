package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm/providers"
)

// piped reports whether a stream is a file, a pipe or a socket: what somebody may
// have put there for the task. It is not for a terminal and not for /dev/null.
func piped(in any) bool {
	f, ok := in.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0)
}

// addPiped adds what is on standard input to a task that is an argument. A pipe
// that says nothing for wait is left, with a warning: whoever started dsh may hold
// its other end and never write.
func (o *runOptions) addPiped(ctx context.Context, s command.Streams, wait time.Duration) error {
	if !piped(s.In) || o.config.Provider == providers.Manual { // there it is what the model says
		return nil
	}
	most := limits.TaskText - len(o.task)
	text, err := readSoon(ctx, s.In, int64(max(most, 0))+1, wait)
	if errors.Is(err, errSilent) {
		fmt.Fprintf(s.Err, "dsh run: nothing came on standard input for %s: the task is the argument alone (give it </dev/null to say so, or all of the task on standard input)\n", wait)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	text = bytes.TrimRight(text, "\r\n")
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil
	case len(text) > most:
		return command.Usagef("the task and what is on standard input have more than %d bytes; name a file in the task that the model can read, and give </dev/null", limits.TaskText)
	case !utf8.Valid(text):
		return command.Usagef("what is on standard input is not UTF-8 text, and cannot be added to the task; give </dev/null to leave it out")
	}
	o.task = fmt.Sprintf("%s\n\n<standard-input bytes=\"%d\">\n%s\n</standard-input>", strings.TrimRight(o.task, "\n"), len(text), text)
	return nil
}

// errInterrupted ends a command that was told to end while it read.
var errInterrupted = &command.StatusError{Status: exitInterrupted, Err: errors.New("interrupted")}

// read is what was read.
type read struct {
	text []byte
	err  error
}

// begin reads on a goroutine of its own. Of a stream that says nothing it goes on
// until the program ends.
func begin(from func() ([]byte, error)) <-chan read {
	done := make(chan read, 1)
	go func() {
		text, err := from()
		done <- read{text, err}
	}()
	return done
}

// readAll reads at most most bytes, until the end of the input or of ctx.
func readAll(ctx context.Context, in io.Reader, most int64) ([]byte, error) {
	done := begin(func() ([]byte, error) { return io.ReadAll(io.LimitReader(in, most)) })
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, errInterrupted
	}
}

// errSilent says that nothing came.
var errSilent = errors.New("nothing came")

// readSoon is readAll for a stream of which the first byte comes soon, if any does.
func readSoon(ctx context.Context, in io.Reader, most int64, wait time.Duration) ([]byte, error) {
	first := &firstByte{in: in, came: make(chan struct{})}
	done := begin(func() ([]byte, error) { return io.ReadAll(io.LimitReader(first, most)) })
	timer := time.NewTimer(wait)
	defer timer.Stop()
	came := first.came
	for {
		select {
		case r := <-done:
			return r.text, r.err
		case <-came:
			came = nil
			timer.Stop()
		case <-timer.C:
			return nil, errSilent
		case <-ctx.Done():
			return nil, errInterrupted
		}
	}
}

// firstByte tells when the first bytes were read.
type firstByte struct {
	in   io.Reader
	came chan struct{} // closed then
	told bool
}

func (f *firstByte) Read(b []byte) (int, error) {
	n, err := f.in.Read(b)
	if n > 0 && !f.told {
		f.told = true
		close(f.came)
	}
	return n, err
}
