package lossless

// Encode returns the value as compact JSON text.
func (v Value) Encode() Text { return v.AppendTo(nil) }

// AppendTo appends the value's compact JSON text to dst.
func (v Value) AppendTo(dst []byte) []byte { return dst }

// String returns the value's compact JSON text.
func (v Value) String() string { return string(v.AppendTo(nil)) }

// MarshalJSON lets a Value be a field of a struct given to encoding/json, which
// escapes HTML unless told otherwise.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendTo(nil), nil }

// UnmarshalJSON is Parse; the text is copied.
func (v *Value) UnmarshalJSON(text []byte) error {
	parsed, err := Parse(text)
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}

// Equal reports whether a and b are the same JSON value: numbers by what they
// amount to (1 and 1.0 are the same), members in any order. Compare Encode where
// order and literals matter.
func Equal(a, b Value) bool { return false }
