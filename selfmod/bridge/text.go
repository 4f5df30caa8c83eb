package bridge

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/lossless"
)

var (
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
	textOutType     = reflect.TypeFor[encoding.TextMarshaler]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	valueType       = reflect.TypeFor[lossless.Value]()
)

// tsName is what a type is called in TypeScript.
func tsName(t reflect.Type) string {
	switch {
	case t == bytesType:
		return "Uint8Array"
	case t == rawType, t == valueType:
		return "any"
	case t == disposeType:
		return "() => Promise<void>"
	case t == signalType:
		return "AbortSignal"
	case isIterator(t):
		return "AsyncIterable<" + tsName(t.In(0).In(0)) + ">"
	case isPromise(t):
		return "Promise<" + tsName(t.Out(0)) + ">"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return tsName(t.Elem())
	case reflect.Func:
		return tsFunc(t)
	}
	if t.Name() != "" && t.PkgPath() != "" {
		if t.String() == "time.Time" {
			return "string"
		}
		return t.Name()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return tsName(t.Elem()) + "[]"
	case reflect.Map:
		return "Record<string, " + tsName(t.Elem()) + ">"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		return "object"
	}
	return "number"
}

func tsFunc(t reflect.Type) string {
	var params []string
	for n := range t.NumIn() {
		if n > 0 || t.In(n) != contextType {
			params = append(params, fmt.Sprintf("arg%d: %s", len(params)+1, tsName(t.In(n))))
		}
	}
	result := "void"
	if t.NumOut() > 0 && t.Out(0) != errorType {
		result = tsName(t.Out(0))
	}
	return "(" + strings.Join(params, ", ") + ") => " + result
}

// got says in a message what a value is.
func got(v lossless.Value) string {
	switch v.Kind() {
	case lossless.Null:
		return "null"
	case lossless.Bool:
		return v.String()
	case lossless.Number:
		return "the number " + v.Literal()
	case lossless.String:
		return "the string " + plain.Preview(string(v.Prefix(shown)))
	case lossless.Array:
		return "an array"
	}
	switch special(v) {
	case "u":
		return "undefined"
	case "b":
		return "a Uint8Array"
	case "f":
		return "a function"
	}
	return "the object " + plain.Preview(string(v.Prefix(shown)))
}

// shown is about how many bytes of a value a message shows.
const shown = 60

// special is the kind of an object that stands for what JSON has not; "": it is
// data.
func special(v lossless.Value) string {
	if v.Kind() != lossless.Object || v.Len() == 0 || v.Key(0) != "$" {
		return ""
	}
	return v.At(0).Str()
}

// suggest names the nearest of some names, or is empty.
func suggest(name string, names []string) string {
	best, least := "", len(name)/3+1
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d <= least && (best == "" || d < least) {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is how many letters are to be put in, taken out, changed or swapped
// with the next to make b of a. What is long is far.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var before, last, row []int
	for j := range len(b) + 1 {
		last = append(last, j)
	}
	for i := 1; i <= len(a); i++ {
		row = append(make([]int, 0, len(b)+1), i)
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row = append(row, d)
		}
		before, last = last, row
	}
	return last[len(b)]
}
