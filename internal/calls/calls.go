// Package calls reads scripts of tool calls, as people and models type them.
//
// # Format
//
// One call a line, in any of these forms; blank lines and lines that begin with
// # are skipped:
//
//	cordis_inspect                                    a name: a call without arguments
//	cordis_inspect {"what": "api"}                    a name and a JSON object: its arguments
//	{"name": "t", "arguments": {"x": 1}}              the same as one JSON object
//	cordis_mount <<EOF                                a name and a text, which is its one
//	…                                                 string argument: the lines up to one
//	EOF                                               that is just EOF, without a last line end
//	write_file {"path": "a.txt"} text <<EOF           a text for the argument "text" beside others
//
// EOF may be any word. Nothing inside a text is read: no escapes, no comments.
//
// A [Reader] is used by one goroutine. After a [SyntaxError] it goes on with the
// next line.
package calls

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// MaxLine is the most bytes of one line.
const MaxLine = limits.Arguments + 1<<20

// A Call is one call of a script.
type Call struct {
	Line      int // where it begins, from 1
	Name      string
	Arguments json.RawMessage // an object; nil: none were written
	// Text is a text that was written below the line; nil: none. Param is the
	// argument it is for; "" is the one string argument that the tool has.
	Text  *string
	Param string
}

// SyntaxError says what is wrong with a line.
type SyntaxError struct {
	Line int
	Msg  string
}

// Error gives the message with the line.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Reader reads calls one after the other.
type Reader struct {
	lines *bufio.Scanner
	line  int
}

// NewReader reads from r, a line at a time: a call is given out as soon as its
// last line is there.
func NewReader(r io.Reader) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine)
	return &Reader{lines: lines}
}

// Next gives the next call; io.EOF at the end, a *SyntaxError for a line that is
// no call, and the reader's error.
func (r *Reader) Next() (Call, error) {
	for {
		line, ok := r.scan()
		if !ok {
			return Call{}, r.end()
		}
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		return r.call(line)
	}
}

func (r *Reader) scan() (string, bool) {
	if !r.lines.Scan() {
		return "", false
	}
	r.line++
	line := r.lines.Text()
	if r.line == 1 {
		line = strings.TrimPrefix(line, "\ufeff") // some editors begin a file with it
	}
	return line, true
}

func (r *Reader) end() error {
	switch err := r.lines.Err(); {
	case err == nil:
		return io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: has more than %d bytes", r.line+1, MaxLine)
	default:
		return fmt.Errorf("read calls: %w", err)
	}
}

func (r *Reader) wrong(line int, format string, args ...any) error {
	return &SyntaxError{line, fmt.Sprintf(format, args...)}
}

// forms tells what a line may be.
const forms = `a call is NAME, NAME {"argument": "value"}, NAME <<EOF with a text below, or {"name": "…", "arguments": {…}}`

var (
	namePart = regexp.MustCompile(`^[^\s{}\[\]<"]+`)
	tailPart = regexp.MustCompile(`^([^\s{}<>"]+[ \t]*)?<<[ \t]*(?:'(\w+)'|"(\w+)"|(\w+))$`)
)

func (r *Reader) call(line string) (Call, error) {
	c := Call{Line: r.line}
	rest := line
	if !strings.HasPrefix(line, "{") {
		c.Name = namePart.FindString(line)
		if c.Name == "" {
			return c, r.wrong(c.Line, "there is no name of a tool at the beginning of %q; %s", plain.Line(line, limits.Preview), forms)
		}
		rest = strings.TrimSpace(line[len(c.Name):])
		if strings.HasPrefix(rest, "{") {
			text, after, err := object(rest)
			if err != nil {
				return c, r.wrong(c.Line, "the arguments of %s are no JSON object on one line: %v; a text of several lines goes below NAME <<EOF", plain.Name(c.Name), err)
			}
			c.Arguments, rest = text, after
		}
	} else {
		text, after, err := object(rest)
		if err != nil {
			return c, r.wrong(c.Line, "no JSON object on one line: %v; %s", err, forms)
		}
		if err := whole(text, &c); err != nil {
			return c, r.wrong(c.Line, "%v", err)
		}
		rest = after
	}
	if rest == "" {
		return c, nil
	}
	tail := tailPart.FindStringSubmatch(rest)
	if tail == nil {
		return c, r.wrong(c.Line, "%q follows where the call has ended; %s", plain.Line(rest, limits.Preview), forms)
	}
	c.Param = strings.TrimSpace(tail[1])
	return r.text(c, tail[2]+tail[3]+tail[4])
}

// object takes a JSON object from the beginning of a line.
func object(line string) (text json.RawMessage, rest string, err error) {
	d := json.NewDecoder(strings.NewReader(line))
	if err := d.Decode(&text); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it does not end")
		}
		return nil, "", err
	}
	return text, strings.TrimSpace(line[d.InputOffset():]), nil
}

// whole reads a call that is one JSON object.
func whole(text json.RawMessage, c *Call) error {
	var members struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var wrong *json.UnmarshalTypeError
	if err := d.Decode(&members); errors.As(err, &wrong) {
		return fmt.Errorf("%q of a call as JSON must be a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
	} else if err != nil {
		return fmt.Errorf(`a call as JSON has "name" and "arguments" only: %s`, strings.TrimPrefix(err.Error(), "json: "))
	}
	if members.Name == "" {
		return errors.New(`a call as JSON needs the "name" of a tool`)
	}
	c.Name = members.Name
	if a := bytes.TrimSpace(members.Arguments); len(a) > 0 && string(a) != "null" {
		if a[0] != '{' {
			return fmt.Errorf(`"arguments" of %s must be an object`, plain.Name(c.Name))
		}
		c.Arguments = a
	}
	return nil
}

// text reads the lines below a call up to the one that is just the word.
func (r *Reader) text(c Call, word string) (Call, error) {
	var b strings.Builder
	for first := true; ; first = false {
		line, ok := r.scan()
		if !ok {
			if err := r.end(); !errors.Is(err, io.EOF) {
				return c, err
			}
			return c, r.wrong(c.Line, "the text that begins here does not end: no line below is just %s", word)
		}
		if strings.TrimSpace(line) == word {
			text := b.String()
			c.Text = &text
			return c, nil
		}
		if b.Len()+len(line) > MaxLine {
			return c, r.wrong(c.Line, "the text that begins here has more than %d bytes", MaxLine)
		}
		if !first {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
}

// Fill gives the arguments of a call with its text in them. candidates are the
// arguments that a text without a name can be for.
func (c Call) Fill(candidates []string) (json.RawMessage, error) {
	if c.Text == nil {
		return c.Arguments, nil
	}
	args := map[string]json.RawMessage{}
	if c.Arguments != nil {
		if err := json.Unmarshal(c.Arguments, &args); err != nil {
			return nil, fmt.Errorf("read arguments of %s: %w", plain.Name(c.Name), err)
		}
	}
	param, err := c.param(args, candidates)
	if err != nil {
		return nil, err
	}
	if _, twice := args[param]; twice {
		return nil, fmt.Errorf("the argument %q of %s is given twice: as JSON and as a text below", plain.Name(param), plain.Name(c.Name))
	}
	if args[param], err = json.Marshal(*c.Text); err != nil {
		return nil, fmt.Errorf("write text: %w", err)
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("write arguments: %w", err)
	}
	return text, nil
}

// param is the argument that the text is for.
func (c Call) param(args map[string]json.RawMessage, candidates []string) (string, error) {
	if c.Param != "" {
		return c.Param, nil
	}
	var open []string
	for _, name := range candidates {
		if _, given := args[name]; !given {
			open = append(open, name)
		}
	}
	switch len(open) {
	case 1:
		return open[0], nil
	case 0:
		return "", fmt.Errorf("%s has no string argument for the text below it; name one: %s ARGUMENT <<EOF", plain.Name(c.Name), plain.Name(c.Name))
	}
	return "", fmt.Errorf("the text below %s could be any of its string arguments %s; name it: %s %s <<EOF", plain.Name(c.Name), strings.Join(open, ", "), plain.Name(c.Name), open[0])
}
