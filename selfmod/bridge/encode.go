package bridge

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service"
)

// writer writes one result.
type writer struct {
	caller  Caller
	objects []*Interface // of the member
	special bool         // something in it is not what it seems to be
	depth   int
}

// safeInteger is the largest integer that a number of JavaScript holds, as all
// below it.
const safeInteger = 1 << 53

// result writes what a method returned; ok is false for nothing.
func (w *writer) result(v reflect.Value) ([]byte, error) {
	t := v.Type()
	switch {
	case t == bytesType:
		if v.IsNil() {
			return []byte{'^'}, nil
		}
		return w.bounded(base64.StdEncoding.AppendEncode([]byte{'^'}, v.Bytes()))
	case t.Kind() == reflect.String && !t.Implements(marshalerType):
		text := v.String()
		if !utf8.ValidString(text) { // asked first since it is fast
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		return w.bounded(append([]byte{'~'}, text...))
	}
	b, err := w.value([]byte{'*'}, v)
	if err != nil {
		return nil, err
	}
	if !w.special {
		b = b[1:]
	}
	return w.bounded(b)
}

func (w *writer) bounded(b []byte) ([]byte, error) {
	if len(b) > limits.Result {
		return nil, &service.Error{Code: CodeTooLarge, Message: fmt.Sprintf("the result is %d bytes, and the limit is %d; ask for less at a time", len(b), limits.Result)}
	}
	return b, nil
}

// value appends v as JSON.
func (w *writer) value(b []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(b, "null"...), nil
	}
	if w.depth++; w.depth > limits.Depth {
		return nil, fmt.Errorf("the result is nested deeper than %d", limits.Depth)
	}
	defer func() { w.depth-- }()
	t := v.Type()
	switch {
	case t == bytesType:
		w.special = true
		b = append(b, `{"$":"b","v":"`...)
		return append(base64.StdEncoding.AppendEncode(b, v.Bytes()), `"}`...), nil
	case t == valueType:
		return w.data(b, v.Interface().(lossless.Value)), nil
	case t == disposeType:
		return w.object(b, "d", disposeInterface, disposer{v.Interface().(service.Dispose)}, v.IsNil())
	case t.Kind() == reflect.Interface && t.NumMethod() > 0 && t != errorType:
		return w.handle(b, t, v)
	case t.Kind() == reflect.Pointer && v.IsNil():
		return append(b, "null"...), nil
	case t.Implements(marshalerType):
		text, err := v.Interface().(json.Marshaler).MarshalJSON()
		if err != nil {
			return nil, err
		}
		return w.text(b, text)
	case t.Implements(textOutType):
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return nil, err
		}
		return appendString(b, string(text)), nil
	}
	return w.plain(b, v)
}

// plain appends what JSON has itself.
func (w *writer) plain(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return w.value(b, v.Elem())
	case reflect.String:
		return appendString(b, v.String()), nil
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Slice, reflect.Array:
		return w.list(b, v)
	case reflect.Map:
		return w.record(b, v)
	case reflect.Struct:
		return w.fields(b, v)
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("the result has the number %v, which JSON has not", f)
		}
		text, err := json.Marshal(f)
		return append(b, text...), err
	}
	switch {
	case v.CanInt():
		if i := v.Int(); i > safeInteger || i < -safeInteger {
			return nil, unsafeNumber(strconv.FormatInt(i, 10))
		}
		return strconv.AppendInt(b, v.Int(), 10), nil
	case v.CanUint():
		if v.Uint() > safeInteger {
			return nil, unsafeNumber(strconv.FormatUint(v.Uint(), 10))
		}
		return strconv.AppendUint(b, v.Uint(), 10), nil
	}
	return nil, fmt.Errorf("the result has a %v, which has no meaning here", v.Type())
}

func unsafeNumber(text string) error {
	return fmt.Errorf("the result has the integer %s, which is beyond 2^53 and would be changed", text)
}

func appendString(b []byte, s string) []byte { return lossless.Str(s).AppendTo(b) }

// text appends JSON that somebody else wrote.
func (w *writer) text(b, text []byte) ([]byte, error) {
	v, err := lossless.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the result has JSON that is none: %w", err)
	}
	if err := lossless.CheckNumbers("result", v); err != nil {
		return nil, err
	}
	return w.data(b, v), nil
}

// data appends v; its keys of "$" signs get one more.
func (w *writer) data(b []byte, v lossless.Value) []byte {
	text := v.Encode()
	if !strings.Contains(string(text), `"$`) {
		return append(b, text...)
	}
	return w.escaped(v).AppendTo(b)
}

func (w *writer) escaped(v lossless.Value) lossless.Value {
	switch v.Kind() {
	case lossless.Array:
		items := make([]lossless.Value, v.Len())
		for n, item := range v.Items() {
			items[n] = w.escaped(item)
		}
		return lossless.Arr(items...)
	case lossless.Object:
		members := make([]lossless.Member, v.Len())
		for n := range members {
			members[n] = lossless.M(w.key(v.Key(n)), w.escaped(v.At(n)))
		}
		return lossless.Obj(members...)
	}
	return v
}

func (w *writer) key(key string) string {
	if dollars(key) {
		w.special = true
		return "$" + key
	}
	return key
}

func (w *writer) list(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '[')
	var err error
	for n := range v.Len() {
		if n > 0 {
			b = append(b, ',')
		}
		if b, err = w.value(b, v.Index(n)); err != nil {
			return nil, err
		}
		if len(b) > limits.Result {
			return w.bounded(b)
		}
	}
	return append(b, ']'), nil
}

func (w *writer) record(b []byte, v reflect.Value) ([]byte, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("the result has a %v, whose keys are no strings", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	b = append(b, '{')
	var err error
	for n, key := range keys {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, w.key(key.String())), ':')
		if b, err = w.value(b, v.MapIndex(key)); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func (w *writer) fields(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '{')
	first := true
	for n, o := 0, fieldsOf(v.Type()); n < len(o.fields); n++ {
		f := &o.fields[n]
		at, err := v.FieldByIndexErr(f.index)
		if err != nil || f.t == signalType || f.empty != nil && f.empty(at) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, w.key(f.name)), ':')
		if b, err = w.value(b, at); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// handle appends what stands for an object that stays here.
func (w *writer) handle(b []byte, t reflect.Type, v reflect.Value) ([]byte, error) {
	at := slices.IndexFunc(w.objects, func(i *Interface) bool { return i.Name == t.Name() })
	if at < 0 {
		return nil, fmt.Errorf("the result has a %v where none can be", t)
	}
	return w.object(b, "h", w.objects[at], v.Interface(), v.IsNil())
}

func (w *writer) object(b []byte, kind string, i *Interface, value any, none bool) ([]byte, error) {
	if none {
		return append(b, "null"...), nil
	}
	id, err := w.caller.Keep(NewObject(i, value))
	if err != nil {
		return nil, err
	}
	w.special = true
	b = append(b, `{"$":"`+kind+`","h":`...)
	b = strconv.AppendUint(b, uint64(id), 10)
	if kind == "h" {
		b = append(appendString(append(b, `,"t":`...), i.Name), '}')
		return b, nil
	}
	return append(b, '}'), nil
}
