package bridge

import (
	"context"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// wrong is what is wrong with an argument, without what shows where.
type wrong struct{ text string }

func (w *wrong) Error() string { return w.text }

func wrongf(format string, args ...any) error { return &wrong{fmt.Sprintf(format, args...)} }

// reader reads the arguments of one call.
type reader struct {
	ctx    context.Context
	caller Caller
	what   string // "ctx.fs.watch", for callbacks
	depth  int
}

// must is the error of a value of the wrong type.
func must(path *place, ts string, v lossless.Value) error {
	return wrongf("%s must be %s, got %s", path, ts, got(v))
}

// read makes v a value of type t. path says in messages what v is, ts what it
// must be.
func (r *reader) read(path *place, ts string, v lossless.Value, t reflect.Type) (reflect.Value, error) {
	out := reflect.New(t).Elem()
	return out, r.into(path, ts, v, out)
}

// into is read for a place that is there.
func (r *reader) into(path *place, ts string, v lossless.Value, out reflect.Value) error {
	t := out.Type()
	switch {
	case t.Kind() == reflect.Pointer:
		if v.IsNull() || special(v) == "u" {
			return nil
		}
		out.Set(reflect.New(t.Elem()))
		return r.into(path, ts, v, out.Elem())
	case t == valueType, t == rawType, t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return readAny(path, v, out)
	case t == bytesType:
		return readBytes(path, ts, v, out)
	case t == signalType:
		return wrongf("%s must be an AbortSignal, got %s", path, got(v))
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return readJSON(path, ts, v, out.Addr().Interface().(json.Unmarshaler))
	case t.Kind() == reflect.Func:
		return r.function(path, ts, v, out)
	case reflect.PointerTo(t).Implements(textType) && v.Kind() == lossless.String:
		if err := out.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(v.Str())); err != nil {
			return wrongf("%s: %s", path, plain.Error(err.Error()))
		}
		return nil
	}
	return r.plain(path, ts, v, out)
}

// plain reads what JSON has itself.
func (r *reader) plain(path *place, ts string, v lossless.Value, out reflect.Value) error {
	t := out.Type()
	switch t.Kind() {
	case reflect.String:
		if v.Kind() != lossless.String {
			return must(path, ts, v)
		}
		if err := oneOf(path, t, v); err != nil {
			return err
		}
		out.SetString(v.Str())
	case reflect.Bool:
		if v.Kind() != lossless.Bool {
			return must(path, ts, v)
		}
		out.SetBool(v.Bool())
	case reflect.Slice, reflect.Array:
		return r.list(path, ts, v, out)
	case reflect.Map:
		return r.record(path, ts, v, out)
	case reflect.Struct:
		return r.object(path, ts, v, out)
	default:
		return readNumber(path, ts, v, out)
	}
	return nil
}

// readNumber reads a number that the type holds.
func readNumber(path *place, ts string, v lossless.Value, out reflect.Value) error {
	if v.Kind() != lossless.Number {
		return must(path, ts, v)
	}
	if out.CanFloat() {
		f := v.Float()
		if math.IsInf(f, 0) || out.OverflowFloat(f) {
			return wrongf("%s is out of range: %s", path, got(v))
		}
		out.SetFloat(f)
		return nil
	}
	i, ok := v.Int64()
	switch {
	case !ok:
		return wrongf("%s must be an integer, got %s", path, got(v))
	case out.CanInt() && !out.OverflowInt(i):
		out.SetInt(i)
	case out.CanUint() && i >= 0 && !out.OverflowUint(uint64(i)):
		out.SetUint(uint64(i))
	case out.CanUint() && i < 0:
		return wrongf("%s must be an integer ≥ 0, got %s", path, got(v))
	default:
		return wrongf("%s is out of range: %s", path, got(v))
	}
	return nil
}

func readBytes(path *place, ts string, v lossless.Value, out reflect.Value) error {
	text, _ := v.Get("v")
	if special(v) != "b" || text.Kind() != lossless.String {
		return must(path, ts, v)
	}
	b, err := base64.StdEncoding.DecodeString(text.Str())
	if err != nil {
		return wrongf("%s: its bytes are not encoded as they should be", path)
	}
	out.SetBytes(b)
	return nil
}

// readJSON lets the type read the value. What it says is shown for a value that
// may be of a right kind.
func readJSON(path *place, ts string, v lossless.Value, to json.Unmarshaler) error {
	if s := special(v); s != "" {
		return must(path, ts, v)
	}
	err := to.UnmarshalJSON(v.Encode())
	if err == nil {
		return nil
	}
	if v.Kind() != lossless.Object && v.Kind() != lossless.String {
		return must(path, ts, v)
	}
	return wrongf("%s must be %s, got %s: %s", path, ts, got(v), plain.Error(err.Error()))
}

// readAny takes data as it is.
func readAny(path *place, v lossless.Value, out reflect.Value) error {
	v, err := data(path, v)
	if err != nil {
		return err
	}
	switch out.Type() {
	case valueType:
		out.Set(reflect.ValueOf(v))
	case rawType:
		out.SetBytes(v.Encode())
	default:
		if err := json.Unmarshal(v.Encode(), out.Addr().Interface()); err != nil {
			return wrongf("%s: %s", path, plain.Error(err.Error()))
		}
	}
	return nil
}

// data is v with the keys that it had; what JSON has not is an error.
func data(path *place, v lossless.Value) (lossless.Value, error) {
	switch v.Kind() {
	case lossless.Array:
		items := make([]lossless.Value, v.Len())
		for n := range items {
			item, err := data(path.index(n), v.At(n))
			if err != nil {
				return v, err
			}
			items[n] = item
		}
		return lossless.Arr(items...), nil
	case lossless.Object:
		if special(v) != "" {
			return v, wrongf("%s must be JSON data, got %s", path, got(v))
		}
		members := make([]lossless.Member, v.Len())
		for n := range members {
			key := unescape(v.Key(n))
			member, err := data(path.member(key), v.At(n))
			if err != nil {
				return v, err
			}
			members[n] = lossless.M(key, member)
		}
		return lossless.Obj(members...), nil
	}
	return v, nil
}

// place is where in the arguments a value is. It becomes a text only for an error.
type place struct {
	root string // "argument 1 (target)"
	up   *place
	step lossless.Step
}

func (p *place) member(key string) *place { return &place{up: p, step: lossless.Step{Key: key}} }
func (p *place) index(n int) *place {
	return &place{up: p, step: lossless.Step{Index: n, IsIndex: true}}
}

// String writes it as one writes it in JavaScript; the middle of a long one is left
// out.
func (p *place) String() string {
	var path lossless.Path
	for ; p.up != nil; p = p.up {
		path = append(path, p.step)
	}
	slices.Reverse(path)
	return path.Format(p.root)
}

// dollars tells whether a key consists of "$" signs.
func dollars(key string) bool { return key != "" && strings.Trim(key, "$") == "" }

// unescape takes away what was put to a key of data.
func unescape(key string) string {
	if dollars(key) {
		return key[1:]
	}
	return key
}

func (r *reader) list(path *place, ts string, v lossless.Value, out reflect.Value) error {
	if v.Kind() != lossless.Array {
		return must(path, ts, v)
	}
	t := out.Type()
	if t.Kind() == reflect.Array && v.Len() != t.Len() {
		return wrongf("%s must have %d items, got %d", path, t.Len(), v.Len())
	}
	if t.Kind() == reflect.Slice {
		out.Set(reflect.MakeSlice(t, v.Len(), v.Len()))
	}
	name := tsName(t.Elem())
	for n, item := range v.Items() {
		if err := r.deeper(path.index(n), name, item, out.Index(n)); err != nil {
			return err
		}
	}
	return nil
}

// deeper is into one level down.
func (r *reader) deeper(path *place, ts string, v lossless.Value, out reflect.Value) error {
	if r.depth++; r.depth > limits.Depth {
		return wrongf("%s is nested deeper than %d", path, limits.Depth)
	}
	defer func() { r.depth-- }()
	return r.into(path, ts, v, out)
}

func (r *reader) record(path *place, ts string, v lossless.Value, out reflect.Value) error {
	t := out.Type()
	if v.Kind() != lossless.Object || special(v) != "" || t.Key().Kind() != reflect.String {
		return must(path, ts, v)
	}
	out.Set(reflect.MakeMapWithSize(t, v.Len()))
	name := tsName(t.Elem())
	for key, member := range v.Members() {
		key = unescape(key)
		one := reflect.New(t.Elem()).Elem()
		if err := r.deeper(path.member(key), name, member, one); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), one)
	}
	return nil
}

func (r *reader) object(path *place, ts string, v lossless.Value, out reflect.Value) error {
	if v.Kind() != lossless.Object || special(v) != "" {
		return must(path, ts, v)
	}
	o := fieldsOf(out.Type())
	for key, member := range v.Members() {
		f := o.find(key)
		if f == nil {
			key = plain.Name(unescape(key))
			return wrongf("%s has no member %q%s It takes: %s", path, key, orDot(suggest(key, o.names)), strings.Join(o.names, ", "))
		}
		if s := special(member); s == "u" && f.optional {
			continue
		}
		to, err := out.FieldByIndexErr(f.index)
		if err != nil {
			return errors.New("embedded pointers have no meaning here")
		}
		if err := r.deeper(path.member(key), tsName(f.t), member, to); err != nil {
			return err
		}
	}
	for n := range o.fields {
		f := &o.fields[n]
		if _, there := v.Get(f.name); !there && !f.optional {
			return wrongf("%s is missing; it must be %s", path.member(f.name), tsName(f.t))
		}
	}
	return nil
}

func orDot(suggestion string) string {
	if suggestion == "" {
		return "."
	}
	return suggestion
}
