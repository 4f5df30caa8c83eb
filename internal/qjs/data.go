package qjs

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

func onData(tls *libc.TLS, ctx uintptr, _ lib.TJSValue, argc int32, argv uintptr) lib.TJSValue {
	vm := vmOf(lib.XJS_GetContextOpaque(tls, ctx))
	if vm == nil || argc < 1 || !isString(argument(argv, 0)) {
		return undefined
	}
	const size = 8
	length := tls.Alloc(size)
	defer tls.Free(size)
	p := lib.XJS_ToCStringLen2(tls, ctx, length, argument(argv, 0), 0)
	if p == 0 {
		return exception
	}
	defer lib.XJS_FreeCString(tls, ctx, p)
	n := *(*lib.Tsize_t)(pointer(length))
	if n > plainBytes {
		return undefined
	}
	r := dataReader{vm: vm, text: unsafe.Slice((*byte)(pointer(p)), n)}
	v := r.value(0)
	r.space()
	libc.Xfree(tls, dataAddress(r.buf))
	switch {
	case r.thrown:
		return exception
	case !r.left && r.i != len(r.text):
		vm.free(v)
		return undefined
	}
	return v // undefined when something was left
}

// dataReader makes frozen values of JSON. A method that gives up sets left or
// thrown and returns undefined; what it has made is freed.
type dataReader struct {
	vm     *VM
	text   []byte // in the engine's memory
	i      int
	left   bool   // for the engine's own reader
	thrown bool   // an exception is pending
	buf    []byte // for strings with escapes, in the engine's memory
}

func (r *dataReader) leave() lib.TJSValue {
	r.left = true
	return undefined
}

func (r *dataReader) fail(v lib.TJSValue) lib.TJSValue {
	r.vm.free(v)
	r.left, r.thrown = true, true
	return undefined
}

func (r *dataReader) drop(v lib.TJSValue) lib.TJSValue {
	r.vm.free(v)
	return r.leave()
}

// made checks a value of the engine's making.
func (r *dataReader) made(v lib.TJSValue) lib.TJSValue {
	if isException(v) {
		return r.fail(undefined)
	}
	return v
}

func (r *dataReader) space() {
	for r.i < len(r.text) {
		switch r.text[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

// next skips space and returns the byte there, 0 at the end.
func (r *dataReader) next() byte {
	r.space()
	if r.i == len(r.text) {
		return 0
	}
	return r.text[r.i]
}

func (r *dataReader) value(depth int) lib.TJSValue {
	switch c := r.next(); {
	case c == '"':
		text, ok := r.str()
		if !ok {
			return r.leave()
		}
		return r.made(lib.XJS_NewStringLen(r.vm.tls, r.vm.ctx, dataAddress(text), lib.Tsize_t(len(text))))
	case c == '{' && depth < plainDepth:
		r.i++
		return r.object(depth)
	case c == '[' && depth < plainDepth:
		r.i++
		return r.array(depth)
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	switch {
	case r.word("true"):
		v := lib.TJSValue{Ftag: lib.EJS_TAG_BOOL}
		withPayload(&v, 1)
		return v
	case r.word("false"):
		return lib.TJSValue{Ftag: lib.EJS_TAG_BOOL}
	case r.word("null"):
		return lib.TJSValue{Ftag: lib.EJS_TAG_NULL}
	}
	return r.leave()
}

func (r *dataReader) word(w string) bool {
	if len(r.text)-r.i < len(w) || string(r.text[r.i:r.i+len(w)]) != w {
		return false
	}
	r.i += len(w)
	return true
}

func dataAddress(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func (r *dataReader) object(depth int) lib.TJSValue {
	vm := r.vm
	o := r.made(lib.XJS_NewObject(vm.tls, vm.ctx))
	if r.thrown {
		return undefined
	}
	for first := true; ; first = false {
		c := r.next()
		switch {
		case c == '}' && first:
		case c == '"' && first:
		case c == ',' && !first:
			if r.i++; r.next() != '"' {
				return r.drop(o)
			}
			c = '"'
		case c == '}':
		default:
			return r.drop(o)
		}
		if c == '}' {
			r.i++
			lib.XJS_PreventExtensions(vm.tls, vm.ctx, o)
			return o
		}
		text, ok := r.str()
		if !ok {
			return r.drop(o)
		}
		atom := lib.XJS_NewAtomLen(vm.tls, vm.ctx, dataAddress(text), lib.Tsize_t(len(text)))
		if atom == 0 {
			return r.fail(o)
		}
		if r.next() != ':' {
			lib.XJS_FreeAtom(vm.tls, vm.ctx, atom)
			return r.drop(o)
		}
		r.i++
		v := r.value(depth + 1)
		set := int32(0)
		if !r.left {
			// A key that is there already cannot be changed: the answer is 0.
			set = lib.XJS_DefinePropertyValue(vm.tls, vm.ctx, o, atom, v, lib.MJS_PROP_ENUMERABLE)
		}
		lib.XJS_FreeAtom(vm.tls, vm.ctx, atom)
		switch {
		case set < 0:
			return r.fail(o)
		case set == 0:
			return r.drop(o)
		}
	}
}

func (r *dataReader) array(depth int) lib.TJSValue {
	vm := r.vm
	a := r.made(lib.XJS_NewArray(vm.tls, vm.ctx))
	if r.thrown {
		return undefined
	}
	n := lib.TJSAtom(0)
	if r.next() != ']' {
		for {
			v := r.value(depth + 1)
			if r.left {
				return r.drop(a)
			}
			if lib.XJS_DefinePropertyValue(vm.tls, vm.ctx, a, atomIsNumber|n, v, lib.MJS_PROP_ENUMERABLE) < 0 {
				return r.fail(a)
			}
			n++
			if c := r.next(); c != ',' {
				if c != ']' {
					return r.drop(a)
				}
				break
			}
			r.i++
		}
	}
	r.i++
	lib.XJS_PreventExtensions(vm.tls, vm.ctx, a)
	if lib.XJS_DefineProperty(vm.tls, vm.ctx, a, lib.EJS_ATOM_length, undefined, undefined, undefined, lib.MJS_PROP_HAS_WRITABLE) < 0 {
		return r.fail(a)
	}
	return a
}

// number reads what JSON's grammar allows.
func (r *dataReader) number() lib.TJSValue {
	from := r.i
	digits := func() bool {
		at := r.i
		for r.i < len(r.text) && r.text[r.i] >= '0' && r.text[r.i] <= '9' {
			r.i++
		}
		return r.i > at
	}
	at := func(c byte) bool { return r.i < len(r.text) && r.text[r.i] == c }
	if at('-') {
		r.i++
	}
	zero := at('0')
	start := r.i
	if !digits() || zero && r.i-start > 1 {
		return r.leave()
	}
	whole := true
	if at('.') {
		r.i++
		if whole = false; !digits() {
			return r.leave()
		}
	}
	if at('e') || at('E') {
		whole = false
		if r.i++; at('+') || at('-') {
			r.i++
		}
		if !digits() {
			return r.leave()
		}
	}
	text := r.text[from:r.i]
	if whole && len(text) < 10 {
		n := int64(0)
		for _, c := range text {
			if c != '-' {
				n = n*10 + int64(c-'0')
			}
		}
		switch {
		case text[0] != '-':
			return newNumber(n)
		case n != 0:
			return newNumber(-n)
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil { // beyond the largest number
		return r.leave()
	}
	if i := int32(f); float64(i) == f && (i != 0 || !math.Signbit(f)) {
		return newNumber(int64(i))
	}
	return newFloat(f)
}

// str reads a string, of which the bytes are valid until the next. It is false for
// what is invalid, and for half a surrogate pair, which UTF-8 cannot hold.
func (r *dataReader) str() ([]byte, bool) {
	r.i++
	from := r.i
	for ; r.i < len(r.text); r.i++ {
		switch c := r.text[r.i]; {
		case c == '"':
			r.i++
			return r.text[from : r.i-1], true
		case c == '\\':
			if r.buf == nil {
				p := libc.Xmalloc(r.vm.tls, lib.Tsize_t(len(r.text)))
				if p == 0 {
					return nil, false
				}
				r.buf = unsafe.Slice((*byte)(pointer(p)), len(r.text))
			}
			r.buf = append(r.buf[:0], r.text[from:r.i]...) // no longer than with escapes
			return r.escaped()
		case c < ' ':
			return nil, false
		case c == 0xED && r.isHalf():
			return nil, false
		}
	}
	return nil, false
}

// isHalf reports whether the three bytes here are half a pair.
func (r *dataReader) isHalf() bool { return r.i+1 < len(r.text) && r.text[r.i+1] >= 0xA0 }

// escaped reads the rest of a string from its first backslash on.
func (r *dataReader) escaped() ([]byte, bool) {
	for r.i < len(r.text) {
		c := r.text[r.i]
		r.i++
		switch {
		case c == '"':
			return r.buf, true
		case c < ' ' || c == 0xED && r.i < len(r.text) && r.text[r.i] >= 0xA0:
			return nil, false
		case c != '\\':
			r.buf = append(r.buf, c)
			continue
		}
		if r.i == len(r.text) {
			return nil, false
		}
		c = r.text[r.i]
		r.i++
		switch c {
		case '"', '\\', '/':
			r.buf = append(r.buf, c)
		case 'b':
			r.buf = append(r.buf, '\b')
		case 'f':
			r.buf = append(r.buf, '\f')
		case 'n':
			r.buf = append(r.buf, '\n')
		case 'r':
			r.buf = append(r.buf, '\r')
		case 't':
			r.buf = append(r.buf, '\t')
		case 'u':
			if !r.unit() {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return nil, false
}

// unit reads the digits of \u, and the second half of a pair.
func (r *dataReader) unit() bool {
	c, ok := r.hex4()
	if !ok {
		return false
	}
	if utf16.IsSurrogate(c) {
		if !r.word(`\u`) {
			return false
		}
		low, ok := r.hex4()
		if c = utf16.DecodeRune(c, low); !ok || c == utf8.RuneError {
			return false
		}
	}
	r.buf = utf8.AppendRune(r.buf, c)
	return true
}

func (r *dataReader) hex4() (rune, bool) {
	if len(r.text)-r.i < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.text[r.i:r.i+4]), 16, 16)
	r.i += 4
	return rune(n), err == nil
}
