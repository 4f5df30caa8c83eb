package lossless

import (
	"errors"
	"fmt"

	"github.com/dsh-go/dsh/limits"
)

// ErrDepth is wrapped by the error for text that is nested deeper than the limit.
var ErrDepth = errors.New("nested too deep")

// SyntaxError says what is wrong with a JSON text and where.
type SyntaxError struct {
	Offset int    // the byte, from 0
	Path   string // of the container it is in, such as cfg.items[2]; "" at the root
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

// Parse reads one JSON document nested at most limits.Depth deep. The error is a
// *SyntaxError.
func Parse(text []byte) (Value, error) { return ParseDepth(text, limits.Depth) }

// ParseDepth is Parse with a limit of its own: [] is nested 1 deep.
func ParseDepth(text []byte, depth int) (Value, error) {
	return Value{}, errors.New("not built")
}

// From returns what encoding/json makes of a Go value, as a Value. Use it for
// the program's own structs; it fails where json.Marshal fails.
func From(v any) (Value, error) { return Value{}, errors.New("not built") }
