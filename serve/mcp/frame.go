package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dsh-go/dsh/limits"
)

// The JSON-RPC error codes that the front gives by itself.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeBusy    = -32000
)

// headBytes of a frame that is too long are kept to look for its id.
const headBytes = 64 << 10

// fault is why a frame is answered here and goes no further.
type fault struct {
	code    int
	message string
	id      json.RawMessage // as the client wrote it, or nil
}

// frameReader cuts a stream into lines.
type frameReader struct {
	r   *bufio.Reader
	max int
}

func newFrameReader(r io.Reader, max int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns the next line that is not blank, without its end. A line beyond
// the limit is read to its end and comes back cut to its head, with long true.
// At the end of the stream the error is io.EOF; a last line needs no line end.
func (f *frameReader) next() (line []byte, long bool, err error) {
	for {
		line, long, err = f.line()
		if len(bytes.TrimSpace(line)) > 0 {
			return line, long, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func (f *frameReader) line() (line []byte, long bool, err error) {
	for {
		part, err := f.r.ReadSlice('\n')
		switch {
		case long:
		case len(line)+len(part) > f.max+1: // the line end is not part of the frame
			line = append(line, part...)
			line, long = bytes.Clone(line[:min(len(line), headBytes)]), true
		default:
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), long, err
		}
	}
}

// decode reads one frame as a JSON-RPC message, or says what is wrong with it.
// It never recurses into the frame before its depth is known to be allowed.
func decode(line []byte, long bool) (jsonrpc.Message, *fault) {
	h := scan(line)
	switch {
	case long:
		return nil, &fault{codeInvalid, fmt.Sprintf("the message is longer than %d bytes; send less, or in parts", limits.MCPFrame), h.id}
	case h.depth > limits.MCPDepth:
		return nil, &fault{codeInvalid, fmt.Sprintf("the message is nested deeper than %d levels", limits.MCPDepth), h.id}
	case !utf8.Valid(line):
		return nil, &fault{codeParse, "the message is not UTF-8", nil}
	case !json.Valid(line):
		return nil, &fault{codeParse, "the message is not JSON: " + syntaxFault(line), nil}
	}
	switch bytes.TrimSpace(line)[0] {
	case '[':
		return nil, &fault{codeInvalid, "batches are not supported; send each message on a line of its own", nil}
	case '{':
	default:
		return nil, &fault{codeInvalid, "a message is a JSON object", nil}
	}
	if h.id != nil && !idSurvives(h.id) {
		return nil, &fault{codeInvalid, "id must be a string or an integer between -(2^53-1) and 2^53-1", h.id}
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, &fault{codeInvalid, "not a JSON-RPC 2.0 message: " + err.Error(), h.id}
	}
	return msg, nil
}

func syntaxFault(line []byte) string {
	var v json.RawMessage
	err := json.Unmarshal(line, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%s at byte %d", syntax, syntax.Offset)
	}
	if err != nil {
		return err.Error()
	}
	return "invalid"
}

// idSurvives says whether the SDK, which reads a number as a float64 and keeps
// an int64, can answer with the same id.
func idSurvives(id json.RawMessage) bool {
	switch id[0] {
	case '"', 'n': // a string, null
		return true
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		f, err := strconv.ParseFloat(string(id), 64)
		return err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53-1
	}
	return false
}

// head is what a single pass over a frame tells.
type head struct {
	depth int             // the deepest nesting
	id    json.RawMessage // the value of the top-level "id", if it is a whole scalar
}

// scan finds the nesting and the id of a JSON text without recursion and
// without trusting that it is JSON.
func scan(text []byte) head {
	var h head
	depth, key := 0, []byte(nil)
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '{', '[':
			depth++
			h.depth = max(h.depth, depth)
			key = nil
			i++
		case '}', ']':
			depth--
			i++
		case '"':
			end := stringEnd(text, i)
			if depth == 1 && key == nil && nextByte(text, end) == ':' {
				key = text[i:end]
			} else if depth == 1 {
				h.noteID(key, text[i:end], end < len(text))
				key = nil
			}
			i = end
		case ',':
			if depth == 1 {
				key = nil
			}
			i++
		case ':', ' ', '\t', '\r', '\n':
			i++
		default:
			end := i
			for end < len(text) && !endsWord(text[end]) {
				end++
			}
			if depth == 1 {
				h.noteID(key, text[i:end], end < len(text))
				key = nil
			}
			i = max(end, i+1)
		}
	}
	return h
}

// noteID keeps a value as the id if its key is "id" and it is a JSON scalar
// that ends within the text.
func (h *head) noteID(key, value []byte, whole bool) {
	if string(key) == `"id"` && whole && len(value) <= 1024 && json.Valid(value) {
		h.id = bytes.Clone(value)
	}
}

// stringEnd returns the index after the string that starts at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func endsWord(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', '{', '}', '[', ']', '"':
		return true
	}
	return false
}

func nextByte(text []byte, i int) byte {
	for ; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return text[i]
	}
	return 0
}
