package lossless

import "unicode/utf8"

// Encode returns the value as compact JSON text.
func (v Value) Encode() Text { return v.AppendTo(nil) }

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

// AppendTo appends the value's compact JSON text to dst.
func (v Value) AppendTo(dst []byte) []byte { return v.appendTo(dst, -1) }

// Prefix returns Encode, or of a longer text a beginning of at least n bytes, not
// cut inside a character. Its cost depends on n, not on the size of the value.
func (v Value) Prefix(n int) Text { return v.appendTo(nil, max(n, 0)) }

// appendTo stops when it has appended limit bytes, unless limit is negative.
func (v Value) appendTo(dst []byte, limit int) []byte {
	type cursor struct {
		v    Value
		next int
	}
	var stack []cursor
	for {
		switch {
		case v.kind == Array && v.body != nil:
			dst = append(dst, '[')
			stack = append(stack, cursor{v: v})
		case v.kind == Object && v.body != nil:
			dst = append(dst, '{')
			stack = append(stack, cursor{v: v})
		default:
			if limit >= 0 && len(v.text) > limit && v.kind != Bool {
				v.text = v.text[:runeEnd(v.text, limit)]
			}
			dst = v.appendScalar(dst)
		}
		for {
			if len(stack) == 0 || limit >= 0 && len(dst) >= limit {
				return dst
			}
			top := &stack[len(stack)-1]
			if top.next < len(top.v.body.items) {
				break
			}
			if top.v.kind == Object {
				dst = append(dst, '}')
			} else {
				dst = append(dst, ']')
			}
			stack = stack[:len(stack)-1]
		}
		top := &stack[len(stack)-1]
		if top.next > 0 {
			dst = append(dst, ',')
		}
		if top.v.kind == Object {
			key := top.v.body.keys[top.next]
			if limit >= 0 && len(key) > limit {
				return appendString(dst, key[:runeEnd(key, limit)])
			}
			dst = append(appendString(dst, key), ':')
		}
		v = top.v.body.items[top.next]
		top.next++
	}
}

// runeEnd returns the end of the character of s that byte i is in.
func runeEnd(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

// appendScalar appends a scalar or an empty container.
func (v Value) appendScalar(dst []byte) []byte {
	switch v.kind {
	case Bool:
		if v.text != "" {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		return append(dst, v.text...)
	case String:
		return appendString(dst, v.text)
	case Array:
		return append(dst, "[]"...)
	case Object:
		return append(dst, "{}"...)
	}
	return append(dst, "null"...)
}

const hex = "0123456789abcdef"

// appendString appends s quoted, with the escapes that JSON demands and no others.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size != 1 {
				i += size
				continue
			}
			dst = append(dst, s[start:i]...)
			if unit, ok := surrogate(s[i:]); ok {
				dst = appendUnit(dst, unit)
				i += 3
			} else {
				dst = append(dst, "\ufffd"...)
				i++
			}
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = appendUnit(dst, rune(c))
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

// Equal reports whether a and b are the same JSON value: numbers by what they
// amount to (1 and 1.0 are the same), members in any order. Compare Encode where
// order and literals matter.
func Equal(a, b Value) bool {
	type pair struct{ a, b Value }
	todo := []pair{{a, b}}
	for len(todo) > 0 {
		a, b := todo[len(todo)-1].a, todo[len(todo)-1].b
		todo = todo[:len(todo)-1]
		if a.kind != b.kind || a.Len() != b.Len() {
			return false
		}
		switch a.kind {
		case Number:
			if !sameNumber(a.text, b.text) {
				return false
			}
		case Bool, String:
			if a.text != b.text {
				return false
			}
		case Array:
			for i, item := range a.Items() {
				todo = append(todo, pair{item, b.body.items[i]})
			}
		case Object:
			for key, item := range a.Members() {
				other, ok := b.Get(key)
				if !ok {
					return false
				}
				todo = append(todo, pair{item, other})
			}
		}
	}
	return true
}
