package lossless

import "errors"

// ErrNumber is wrapped by the error of CheckNumbers.
var ErrNumber = errors.New("not a lossless number")

// Float returns the float64 nearest to a number, infinite when it is out of
// range; 0 for every other kind.
func (v Value) Float() float64 { return 0 }

// Int64 returns a number's value when it is an integer that an int64 holds; 2.0
// and 1e3 are integers.
func (v Value) Int64() (int64, bool) { return 0, false }

// IsInteger reports whether v is a number without a fraction, of any size.
func (v Value) IsInteger() bool { return false }

// CheckNumbers reports the numbers in v, by path from root, that do not survive
// a float64 and so JavaScript: integers beyond 2^53 that come back as another
// number, negative zero, and what is out of range. At most limits.Violations are
// named. root may be "".
func CheckNumbers(root string, v Value) error { return nil }
