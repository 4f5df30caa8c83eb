package message

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/dsh-go/dsh/lossless"
)

// Text is a string that comes back byte for byte from JSON. It is written as a
// JSON string where that can hold it: valid UTF-8, and lone surrogates in their
// three-byte form, as package lossless reads them. Every other sequence of bytes
// is written as {"base64": "…"}.
type Text string

var (
	_ json.Marshaler   = Text("")
	_ json.Unmarshaler = (*Text)(nil)
)

// MarshalJSON writes the text.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return lossless.Str(string(t)).Encode(), nil
	}
	encoded := lossless.Str(string(t)).Encode()
	if v, err := lossless.Parse(encoded); err == nil && v.Str() == string(t) {
		return encoded, nil
	}
	return lossless.Obj(lossless.M("base64", lossless.Str(base64.StdEncoding.EncodeToString([]byte(t))))).Encode(), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(text []byte) error {
	v, err := lossless.Parse(text)
	if err != nil {
		return err
	}
	read, ok := ReadText(v)
	if !ok {
		return fmt.Errorf(`a text is a string or {"base64": "…"}`)
	}
	*t = read
	return nil
}

// ReadText returns the text that a JSON value holds, and whether it holds one.
func ReadText(v lossless.Value) (Text, bool) {
	if v.Kind() == lossless.String {
		return Text(v.Str()), true
	}
	if encoded, ok := v.Get("base64"); ok && v.Len() == 1 && encoded.Kind() == lossless.String {
		if raw, err := base64.StdEncoding.DecodeString(encoded.Str()); err == nil {
			return Text(raw), true
		}
	}
	return "", false
}
