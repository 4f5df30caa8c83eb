package lossless

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/limits"
)

// ErrDepth is wrapped by the error for text that is nested deeper than the limit.
var ErrDepth = errors.New("nested too deep")

// SyntaxError says what is wrong with a JSON text and where.
type SyntaxError struct {
	Offset int    // the byte, from 0
	Path   string // of the array or object it is in, such as cfg.items[2]; "" at the root
	Reason string // what is wrong, in one line
	deep   bool
}

// Error returns the place and the reason.
func (e *SyntaxError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("json at byte %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("json at byte %d, in %s: %s", e.Offset, e.Path, e.Reason)
}

// Is reports ErrDepth for an error about nesting.
func (e *SyntaxError) Is(target error) bool { return e.deep && target == ErrDepth }

// Parse reads one JSON document nested at most limits.Depth deep. The text is
// copied. The error is a *SyntaxError.
func Parse(text []byte) (Value, error) { return ParseDepth(text, limits.Depth) }

// ParseDepth is Parse with a limit of its own: [] is nested 1 deep.
func ParseDepth(text []byte, depth int) (Value, error) {
	p := parser{src: string(text), depth: depth}
	if at := invalidUTF8(p.src); at >= 0 {
		return Value{}, &SyntaxError{Offset: at, Reason: "not valid UTF-8"}
	}
	return p.document()
}

// From returns what encoding/json makes of a Go value, as a Value. Use it for
// the program's own structs; it fails where json.Marshal fails.
func From(v any) (Value, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return Value{}, fmt.Errorf("encode value: %w", err)
	}
	return Parse(text.Bytes())
}

// parser reads iteratively: open holds the containers around the place, values
// and keys what has been read of all of them, so that a container that ends
// takes its own from the end of both.
type parser struct {
	src    string
	pos    int
	depth  int
	open   []container
	values []Value
	keys   []string
}

type container struct {
	object       bool
	values, keys int            // where its own begin
	index        map[string]int // as body.index
}

func (p *parser) document() (Value, error) {
	p.values = make([]Value, 0, 16)
	for {
		opened, err := p.value()
		if err != nil {
			return Value{}, err
		}
		if opened {
			continue
		}
		done, err := p.afterValue()
		if err != nil {
			return Value{}, err
		}
		if done {
			break
		}
	}
	if c := p.next(); c != 0 || p.pos < len(p.src) {
		return Value{}, p.fail("data after the document: one JSON value is expected")
	}
	return p.values[0], nil
}

// value reads a scalar or an empty container onto values, or opens a container
// and reports so; of an object it has then read the first key.
func (p *parser) value() (opened bool, err error) {
	switch c := p.next(); c {
	case '{', '[':
		if len(p.open) >= p.depth {
			return false, &SyntaxError{Offset: p.pos, Reason: fmt.Sprintf("nested deeper than %d", p.depth), deep: true}
		}
		p.pos++
		kind, end := Array, byte(']')
		if c == '{' {
			kind, end = Object, '}'
		}
		if p.next() == end {
			p.pos++
			p.values = append(p.values, Value{kind: kind})
			return false, nil
		}
		p.open = append(p.open, container{object: kind == Object, values: len(p.values), keys: len(p.keys)})
		if kind == Object {
			return true, p.key()
		}
		return true, nil
	case '"':
		s, err := p.str()
		p.values = append(p.values, Value{kind: String, text: s})
		return false, err
	case 't':
		return false, p.word("true", Value{kind: Bool, text: "true"})
	case 'f':
		return false, p.word("false", Value{kind: Bool})
	case 'n':
		return false, p.word("null", Value{})
	default:
		if c == '-' || isDigit(c) {
			return false, p.number()
		}
		return false, p.unexpected("a value")
	}
}

// afterValue reads what follows a value: a comma (and the next key), or the
// ends of containers. It reports whether the document's value is complete.
func (p *parser) afterValue() (done bool, err error) {
	for len(p.open) > 0 {
		top := &p.open[len(p.open)-1]
		c := p.next()
		switch {
		case c == ',':
			p.pos++
			if top.object {
				return false, p.key()
			}
			return false, nil
		case c == '}' && top.object, c == ']' && !top.object:
			p.close(top)
		case top.object:
			return false, p.unexpected("',' or '}'")
		default:
			return false, p.unexpected("',' or ']'")
		}
	}
	return true, nil
}

// close replaces the values of the innermost container by the container. The
// position is at its closing bracket.
func (p *parser) close(top *container) {
	b := &body{items: append([]Value(nil), p.values[top.values:]...)}
	kind := Array
	if top.object {
		kind = Object
		b.keys = append([]string(nil), p.keys[top.keys:]...)
		b.index = top.index
		p.keys = p.keys[:top.keys]
	}
	p.pos++
	p.values = append(p.values[:top.values], Value{kind: kind, body: b})
	p.open = p.open[:len(p.open)-1]
}

// key reads a key of the innermost object and its colon.
func (p *parser) key() error {
	if p.next() != '"' {
		return p.unexpected("a key in double quotes")
	}
	at := p.pos
	key, err := p.str()
	if err != nil {
		return err
	}
	top := &p.open[len(p.open)-1]
	own := body{keys: p.keys[top.keys:], index: top.index}
	if own.find(key) >= 0 {
		p.pos = at
		return p.fail("duplicate key " + quote(key))
	}
	p.keys = append(p.keys, key)
	own.keys = p.keys[top.keys:]
	own.noteKey()
	top.index = own.index
	if p.next() != ':' {
		return p.unexpected("':'")
	}
	p.pos++
	return nil
}

func (p *parser) word(word string, v Value) error {
	if !strings.HasPrefix(p.src[p.pos:], word) {
		return p.unexpected("a value")
	}
	p.pos += len(word)
	p.values = append(p.values, v)
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
