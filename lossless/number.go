package lossless

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/limits"
)

// ErrNumber is wrapped by the error of CheckNumbers.
var ErrNumber = errors.New("not a lossless number")

// Float returns the float64 nearest to a number, infinite when it is out of
// range; 0 for every other kind.
func (v Value) Float() float64 {
	if v.kind != Number {
		return 0
	}
	f, _ := strconv.ParseFloat(v.text, 64) // the grammar is JSON's: only a range error, with ±Inf
	return f
}

// Int64 returns a number's value when it is an integer that an int64 holds; 2.0
// and 1e3 are integers.
func (v Value) Int64() (int64, bool) {
	if v.kind != Number {
		return 0, false
	}
	if i, err := strconv.ParseInt(v.text, 10, 64); err == nil {
		return i, true
	}
	d := parseDecimal(v.text)
	if d.digits == "" {
		return 0, true
	}
	if !d.integer() || d.exp > 19 {
		return 0, false
	}
	text := d.digits + strings.Repeat("0", int(d.exp)-len(d.digits))
	if d.negative {
		text = "-" + text
	}
	i, err := strconv.ParseInt(text, 10, 64)
	return i, err == nil
}

// IsInteger reports whether v is a number without a fraction, of any size.
func (v Value) IsInteger() bool {
	return v.kind == Number && (smallInteger(v.text) || parseDecimal(v.text).integer())
}

// CheckNumbers reports the numbers in v, by path from root, that do not survive
// a float64 and so JavaScript: integers beyond 2^53 that come back as another
// number, negative zero, and what is out of a float64's range. At most
// limits.Violations are named. root may be "".
func CheckNumbers(root string, v Value) error {
	type cursor struct {
		v    Value
		next int
	}
	var found []string
	more := 0
	stack := []cursor{{v: v}}
	if reason := numberFault(v); reason != "" {
		found = append(found, placed(root, reason))
	}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next >= top.v.Len() {
			stack = stack[:len(stack)-1]
			continue
		}
		child := top.v.body.items[top.next]
		top.next++
		if child.body != nil {
			stack = append(stack, cursor{v: child})
			continue
		}
		reason := numberFault(child)
		if reason == "" {
			continue
		}
		if len(found) >= limits.Violations {
			more++
			continue
		}
		path := make(Path, len(stack))
		for i, c := range stack {
			path[i] = c.v.step(c.next - 1)
		}
		found = append(found, placed(path.Format(root), reason))
	}
	if len(found) == 0 {
		return nil
	}
	if more > 0 {
		found = append(found, fmt.Sprintf("and %d more", more))
	}
	return &numbersError{strings.Join(found, "; ")}
}

type numbersError struct{ text string }

func (e *numbersError) Error() string        { return e.text }
func (e *numbersError) Is(target error) bool { return target == ErrNumber }

func placed(path, reason string) string {
	if path == "" {
		return reason
	}
	return path + ": " + reason
}

// step returns the step from a container to its child i.
func (v Value) step(i int) Step {
	if v.kind == Object {
		return Step{Key: v.body.keys[i]}
	}
	return Step{Index: i, IsIndex: true}
}

// numberFault says why v is a number that a float64 does not keep, "" otherwise.
func numberFault(v Value) string {
	if v.kind != Number || smallInteger(v.text) {
		return ""
	}
	f := v.Float()
	switch {
	case math.IsInf(f, 0):
		return short(v.text) + " is out of the range of a number: pass it as a string"
	case f == 0 && parseDecimal(v.text).digits != "":
		return short(v.text) + " is too small for a number, it would become 0: pass it as a string"
	case f == 0 && v.text[0] == '-':
		return short(v.text) + " is negative zero, which JSON does not keep: pass 0"
	case math.Abs(f) < 1<<53:
		return ""
	}
	// Whoever reads the float64 prints it at its shortest: 1e23 comes back as
	// it was, 2^60 does not.
	if parseDecimal(v.text).integer() && !sameNumber(v.text, strconv.FormatFloat(f, 'e', -1, 64)) {
		return short(v.text) + " is an integer beyond 2^53 that a number does not keep: pass it as a string"
	}
	return ""
}

func short(literal string) string {
	if len(literal) > 40 {
		return literal[:40] + "…"
	}
	return literal
}

// smallInteger reports whether a literal is an integer of at most 15 digits,
// other than negative zero: every reader keeps it.
func smallInteger(literal string) bool {
	if len(literal) > 15 {
		return false
	}
	digits := strings.TrimPrefix(literal, "-")
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return false
		}
	}
	return digits != "" && (len(digits) == len(literal) || digits[0] != '0')
}

// decimal is a number as 0.digits × 10^exp, digits without zeros at either end;
// no digits is zero.
type decimal struct {
	negative bool
	digits   string
	exp      int64
}

func (d decimal) integer() bool { return d.exp >= int64(len(d.digits)) }

// parseDecimal reads a literal of JSON's grammar.
func parseDecimal(literal string) decimal {
	rest, negative := strings.CutPrefix(literal, "-")
	var exp int64
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		var err error
		exp, err = strconv.ParseInt(rest[i+1:], 10, 64)
		if err != nil || exp > maxExponent || exp < -maxExponent {
			exp = maxExponent
			if rest[i+1] == '-' {
				exp = -maxExponent
			}
		}
		rest = rest[:i]
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	exp += int64(len(whole))
	digits := whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	exp -= int64(len(digits) - len(trimmed))
	trimmed = strings.TrimRight(trimmed, "0")
	if trimmed == "" {
		return decimal{}
	}
	return decimal{negative, trimmed, exp}
}

// maxExponent is where exponents are held, far beyond every reader's range.
const maxExponent = 1 << 50

// sameNumber reports whether two literals amount to the same number.
func sameNumber(a, b string) bool { return a == b || parseDecimal(a) == parseDecimal(b) }
