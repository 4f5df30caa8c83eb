package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// An Event is one record of a log. It is frozen: a copy shares everything with
// the log, and nothing of it can be changed. Its JSON, in the log, in exports
// and wherever events are shown to programs, is one line:
//
//	{"type":"turn/start","seq":0,"time":1790000000000,"data":{"turn":1}}
//
// followed, in events that change what the model sees, by "surfaceOp" and
// "sourceEventSeqs".
type Event struct {
	Seq  int64 // its index in the log
	Type Type
	Time int64 // Unix milliseconds

	op       Op
	sources  []int64
	line     string
	from, to int // of the data in the line
}

// Line returns the event's line without the newline.
func (e Event) Line() string { return e.line }

// Data returns the JSON text of the payload.
func (e Event) Data() string { return e.line[e.from:e.to] }

// Op returns the surface operation; its zero value for events without one.
func (e Event) Op() Op { return e.op }

// Sources returns the sequence numbers of the events that this one was made of.
func (e Event) Sources() []int64 { return slices.Clone(e.sources) }

// MarshalJSON returns the line.
func (e Event) MarshalJSON() ([]byte, error) { return []byte(e.line), nil }

// An OpKind says what an event does to the surface.
type OpKind string

// The surface operations. The zero value is none: the event is not on the
// surface.
const (
	// Append puts the message at the end. In payloads it is the default.
	Append OpKind = "append"
	// Replace puts the message in the place of the nodes Start to End, which are
	// then shadowed; a user message with empty content removes them.
	Replace OpKind = "replace"
	// Insert puts a user message before the node Start.
	Insert OpKind = "insert"
)

// An Op is a surface operation. Start and End are sequence numbers of events
// that are on the surface now, in their order there, End included.
type Op struct {
	Kind  OpKind
	Start int64
	End   int64
}

func (o Op) appendTo(dst []byte) []byte {
	switch o.Kind {
	case Replace:
		return fmt.Appendf(dst, `{"op":"replace","start":%d,"end":%d}`, o.Start, o.End)
	case Insert:
		return fmt.Appendf(dst, `{"op":"insert","before":%d}`, o.Start)
	}
	return append(dst, `"append"`...)
}

// newEvent renders the line.
func newEvent(seq int64, kind Type, time int64, data []byte, op Op, sources []int64) Event {
	line := appendHead(make([]byte, 0, len(data)+len(kind)+80), seq, kind, time)
	e := Event{Seq: seq, Type: kind, Time: time, op: op, sources: sources, from: len(line)}
	line = append(line, data...)
	e.to = len(line)
	e.line = string(appendTail(line, op, sources))
	return e
}

func appendHead(line []byte, seq int64, kind Type, time int64) []byte {
	line = append(line, `{"type":`...)
	line = lossless.Str(string(kind)).AppendTo(line)
	line = append(line, `,"seq":`...)
	line = strconv.AppendInt(line, seq, 10)
	line = append(line, `,"time":`...)
	line = strconv.AppendInt(line, time, 10)
	return append(line, `,"data":`...)
}

func appendTail(line []byte, op Op, sources []int64) []byte {
	if op.Kind != "" {
		line = append(line, `,"surfaceOp":`...)
		line = op.appendTo(line)
	}
	if sources != nil {
		line = append(line, `,"sourceEventSeqs":[`...)
		for i, s := range sources {
			if i > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendInt(line, s, 10)
		}
		line = append(line, ']')
	}
	return append(line, '}')
}

// ParseEvent reads one line, without its newline. What it returns says the same
// as the line; the rules of a log are checked when the event enters one.
func ParseEvent(line string) (Event, error) {
	e, _, err := parseEvent(line)
	return e, err
}

// parseEvent returns the payload too, so that nobody parses it again; of a chunk
// only what the rules of the log look at.
func parseEvent(line string) (Event, lossless.Value, error) {
	if len(line) > limits.SessionEvent {
		return Event{}, lossless.Value{}, fmt.Errorf("the line has %d bytes; an event has at most %d", len(line), limits.SessionEvent)
	}
	if e, data, ok := parseChunk(line); ok {
		return e, data, nil
	}
	v, err := lossless.Parse([]byte(line))
	if err != nil {
		return Event{}, lossless.Value{}, fmt.Errorf("not a JSON event: %w", err)
	}
	if v.Kind() != lossless.Object {
		return Event{}, lossless.Value{}, fmt.Errorf("not an event, which is a JSON object, but %s", plain.Preview(line))
	}
	var e Event
	var data lossless.Value
	seen := 0
	for key, m := range v.Members() {
		if err := e.member(key, m); err != nil {
			return Event{}, lossless.Value{}, fmt.Errorf("member %q: %w", plain.Name(key), err)
		}
		switch key {
		case "data":
			data = m
			seen++
		case "type", "seq", "time":
			seen++
		}
	}
	if seen != 4 {
		return Event{}, lossless.Value{}, errors.New("an event has type, seq, time and data; one of them is missing")
	}
	// The line as it is, if it has the form that newEvent writes.
	head := appendHead(nil, e.Seq, e.Type, e.Time)
	tail := appendTail(nil, e.op, e.sources)
	if strings.HasPrefix(line, string(head)) && strings.HasSuffix(line, string(tail)) {
		e.line, e.from, e.to = line, len(head), len(line)-len(tail)
		return e, data, nil
	}
	return newEvent(e.Seq, e.Type, e.Time, data.Encode(), e.op, e.sources), data, nil
}

// member reads one member of an event's object.
func (e *Event) member(key string, v lossless.Value) error {
	switch key {
	case "type":
		if v.Kind() != lossless.String || !validType(v.Str()) {
			return errors.New("a type is a text such as turn/start")
		}
		e.Type = Type(v.Str())
	case "seq":
		return readCount(v, &e.Seq)
	case "time":
		return readCount(v, &e.Time)
	case "data":
		if v.Kind() != lossless.Object {
			return errors.New("the data of an event is an object")
		}
	case "surfaceOp":
		return e.op.read(v)
	case "sourceEventSeqs":
		if v.Kind() != lossless.Array {
			return errors.New("it is a list of sequence numbers")
		}
		e.sources = make([]int64, v.Len())
		for i, s := range v.Items() {
			if err := readCount(s, &e.sources[i]); err != nil {
				return err
			}
		}
	default:
		return errors.New("an event has the members type, seq, time, data, surfaceOp and sourceEventSeqs")
	}
	return nil
}

func (o *Op) read(v lossless.Value) error {
	if v.Kind() == lossless.String && v.Str() == string(Append) {
		*o = Op{Kind: Append}
		return nil
	}
	kind, _ := v.Get("op")
	start, hasStart := v.Get("start")
	end, hasEnd := v.Get("end")
	before, hasBefore := v.Get("before")
	switch {
	case kind.Str() == string(Replace) && hasStart && hasEnd && v.Len() == 3:
		o.Kind = Replace
		return errors.Join(readCount(start, &o.Start), readCount(end, &o.End))
	case kind.Str() == string(Insert) && hasBefore && v.Len() == 2:
		o.Kind = Insert
		return readCount(before, &o.Start)
	}
	return errors.New(`it is "append", {"op":"replace","start":seq,"end":seq} or {"op":"insert","before":seq}`)
}

// maxSafe is the greatest integer that every reader of JSON keeps.
const maxSafe = 1<<53 - 1

func readCount(v lossless.Value, into *int64) error {
	n, ok := v.Int64()
	if !ok || n < 0 || n > maxSafe {
		return fmt.Errorf("%s is not an integer from 0 to 2^53-1", plain.Preview(v.String()))
	}
	*into = n
	return nil
}

// parseChunk reads the most frequent line, a chunk in the form that newEvent
// writes, without building its payload. It reports false for any other line.
func parseChunk(line string) (Event, lossless.Value, bool) {
	rest, ok := strings.CutPrefix(line, `{"type":"`+string(TypeChunk)+`","seq":`)
	if !ok {
		return Event{}, lossless.Value{}, false
	}
	e := Event{Type: TypeChunk, line: line}
	var turn, step int64
	for _, f := range []struct {
		into *int64
		then string
	}{{&e.Seq, `,"time":`}, {&e.Time, `,"data":{"turn":`}, {&turn, `,"step":`}, {&step, `,"chunk":{`}} {
		if *f.into, rest, ok = cutCount(rest); !ok {
			return Event{}, lossless.Value{}, false
		}
		if rest, ok = strings.CutPrefix(rest, f.then); !ok {
			return Event{}, lossless.Value{}, false
		}
		if f.into == &e.Time {
			e.from = len(line) - len(rest) - len(`{"turn":`)
		}
	}
	if strings.Contains(rest, `"usage":`) { // the fold counts it
		return Event{}, lossless.Value{}, false
	}
	// What remains has to be the members of one object and the two ends.
	chunk, ok := strings.CutSuffix(rest, "}}")
	if !ok || !utf8.ValidString(chunk) || !validObject(chunk) {
		return Event{}, lossless.Value{}, false
	}
	e.to = len(line) - 1
	return e, lossless.Obj(lossless.M("turn", lossless.Int(turn)), lossless.M("step", lossless.Int(step))), true
}

// validObject reports whether the text is an object without its opening brace.
func validObject(text string) bool {
	buf := make([]byte, 0, 512)
	buf = append(append(buf, '{'), text...)
	// Brackets in texts count too: then the strict parser decides.
	brackets := bytes.Count(buf, []byte{'{'}) + bytes.Count(buf, []byte{'['})
	return brackets < limits.Depth/2 && json.Valid(buf)
}

// cutCount takes a canonical integer of at most 15 digits from the front.
func cutCount(text string) (n int64, rest string, ok bool) {
	i := 0
	for i < len(text) && i < 15 && '0' <= text[i] && text[i] <= '9' {
		n = n*10 + int64(text[i]-'0')
		i++
	}
	return n, text[i:], i == 1 || i > 1 && text[0] != '0'
}
