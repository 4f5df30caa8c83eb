package lossless

import (
	"encoding/json"
	"iter"
	"strconv"
)

// Text is JSON text kept as it came. It is json.RawMessage, so encoding/json
// embeds it as it is.
type Text = json.RawMessage

// Kind says what a Value is.
type Kind uint8

// The six kinds of JSON value. The zero Value is null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

// String returns the kind's name in JSON Schema: null, boolean, number, string, array, object.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Value is one JSON value with everything below it. The zero Value is null.
// It is immutable; copying it copies a few words.
type Value struct {
	kind Kind
	text string // a string's content, a number's literal, "true" for true
	body *body  // of arrays and objects; nil when empty
}

// body holds the members of an object (keys parallel to items) or the items of an array.
type body struct {
	items []Value
	keys  []string
	index map[string]int // only for objects with more than indexFrom members
}

// indexFrom is the number of members up to which a scan is as fast as a map.
const indexFrom = 16

// Member is one entry of an object.
type Member struct {
	Key   string
	Value Value
}

// M returns the member key: v. It makes Obj calls short.
func M(key string, v Value) Member { return Member{Key: key, Value: v} }

// Boolean returns true or false as a Value.
func Boolean(b bool) Value {
	if b {
		return Value{kind: Bool, text: "true"}
	}
	return Value{kind: Bool}
}

// Int returns an integer as a Value.
func Int(i int64) Value { return Value{kind: Number, text: strconv.FormatInt(i, 10)} }

// Str returns a string as a Value. Bytes that are not valid UTF-8 are written
// as U+FFFD by Encode, lone surrogates in their three-byte form as escapes.
func Str(s string) Value { return Value{kind: String, text: s} }

// Arr returns an array of the items, which are copied.
func Arr(items ...Value) Value {
	if len(items) == 0 {
		return Value{kind: Array}
	}
	return Value{kind: Array, body: &body{items: append([]Value(nil), items...)}}
}

// Obj returns an object with the members in their order. Of a key that comes
// twice the last value is kept, in the place of the first.
func Obj(members ...Member) Value {
	b := &body{}
	for _, m := range members {
		if i := b.find(m.Key); i >= 0 {
			b.items[i] = m.Value
			continue
		}
		b.keys = append(b.keys, m.Key)
		b.items = append(b.items, m.Value)
		b.noteKey()
	}
	if len(b.keys) == 0 {
		b = nil
	}
	return Value{kind: Object, body: b}
}

// noteKey keeps the index current after a key was appended to keys.
func (b *body) noteKey() {
	switch n := len(b.keys); {
	case n == indexFrom+1:
		b.index = make(map[string]int, 2*n)
		for i, k := range b.keys {
			b.index[k] = i
		}
	case n > indexFrom+1:
		b.index[b.keys[n-1]] = n - 1
	}
}

// find returns the place of a key, or -1.
func (b *body) find(key string) int {
	if b == nil {
		return -1
	}
	if b.index != nil {
		if i, ok := b.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range b.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// Kind returns what the value is.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.kind == Null }

// Bool returns a boolean's value; false for every other kind.
func (v Value) Bool() bool { return v.kind == Bool && v.text == "true" }

// Str returns a string's content; "" for every other kind.
func (v Value) Str() string {
	if v.kind != String {
		return ""
	}
	return v.text
}

// Literal returns a number's literal exactly as it came; "" for every other kind.
func (v Value) Literal() string {
	if v.kind != Number {
		return ""
	}
	return v.text
}

// Len returns the number of items of an array or members of an object; 0 for every other kind.
func (v Value) Len() int {
	if v.body == nil {
		return 0
	}
	return len(v.body.items)
}

// At returns item i of an array or the value of member i of an object.
// It panics when i is out of range, as a slice does.
func (v Value) At(i int) Value {
	if v.body == nil {
		panic("lossless: index of an empty " + v.kind.String())
	}
	return v.body.items[i]
}

// Key returns the key of member i of an object. It panics when i is out of range.
func (v Value) Key(i int) string {
	if v.body == nil {
		panic("lossless: key of an empty " + v.kind.String())
	}
	return v.body.keys[i]
}

// Get returns the member with the key, and whether v is an object that has it.
func (v Value) Get(key string) (Value, bool) {
	if v.kind != Object {
		return Value{}, false
	}
	if i := v.body.find(key); i >= 0 {
		return v.body.items[i], true
	}
	return Value{}, false
}

// Members yields an object's members in order; nothing for every other kind.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.kind != Object || v.body == nil {
			return
		}
		for i, k := range v.body.keys {
			if !yield(k, v.body.items[i]) {
				return
			}
		}
	}
}

// Items yields an array's items in order; nothing for every other kind.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.kind != Array || v.body == nil {
			return
		}
		for i, item := range v.body.items {
			if !yield(i, item) {
				return
			}
		}
	}
}

// With returns the object with the member set: replaced in its place, or added at
// the end. Of every other kind it returns an object with that one member.
func (v Value) With(key string, value Value) Value {
	members := make([]Member, 0, v.Len()+1)
	for k, item := range v.Members() {
		members = append(members, Member{k, item})
	}
	return Obj(append(members, Member{key, value})...)
}
