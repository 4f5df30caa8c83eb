package wire

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Read reads the JSON text of an object into v, as package json does, where
// that is all of one known form. For each key at gives where in v the member goes: a
// *string, *bool, *uint32, *float64, *json.RawMessage, or a func(part []byte) bool that
// takes it; nil: there is no such member. Text of another form, with escapes in a
// string for example, is left to package json altogether.
//
// A json.RawMessage is a part as it stands, and may be no JSON: whoever uses it
// parses it.
func Read[T any](text []byte, v *T, at func(v *T, key string) any) error {
	if CutObject(text, func(key, part []byte) bool { return set(at(v, string(key)), part) }) {
		return nil
	}
	*v = *new(T)
	return json.Unmarshal(text, v)
}

func set(where any, part []byte) bool {
	switch to := where.(type) {
	case *string:
		var ok bool
		*to, ok = plainString(part)
		return ok
	case *bool:
		*to = string(part) == "true"
		return *to || string(part) == "false"
	case *uint32:
		n, err := strconv.ParseUint(string(part), 10, 32)
		*to = uint32(n)
		return err == nil && (len(part) == 1 || part[0] != '0')
	case *float64:
		n, err := strconv.ParseUint(string(part), 10, 32) // what is no small integer is rare
		*to = float64(n)
		return err == nil && (len(part) == 1 || part[0] != '0')
	case *json.RawMessage:
		*to = part
		return true
	case func([]byte) bool:
		return to(part)
	}
	return false
}

// plainString reads the text of a string without escapes.
func plainString(part []byte) (string, bool) {
	if len(part) < 2 || part[0] != '"' || part[len(part)-1] != '"' {
		return "", false
	}
	part = part[1 : len(part)-1]
	for _, c := range part {
		if c < ' ' || c == '"' || c == '\\' {
			return "", false
		}
	}
	if !utf8.Valid(part) {
		return "", false
	}
	return string(part), true
}

// ReadLoaded reads the value of a successful Load.
func ReadLoaded(text []byte) (Loaded, error) {
	var l Loaded
	err := Read(text, &l, func(l *Loaded, key string) any {
		switch key {
		case "name":
			return &l.Name
		case "typescript":
			return &l.TypeScript
		case "inject":
			return func(list []byte) bool {
				l.Inject = []Inject{}
				return CutArray(list, func(item []byte) bool {
					var d Inject
					plain := CutObject(item, func(key, part []byte) bool {
						switch string(key) {
						case "name":
							return set(&d.Name, part)
						case "optional":
							return set(&d.Optional, part)
						}
						return false // a config is checked by package json
					})
					l.Inject = append(l.Inject, d)
					return plain
				})
			}
		}
		return nil
	})
	return l, err
}
