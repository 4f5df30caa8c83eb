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

// __text(v) is the JSON text of a value that is plain data through and through, and
// __data(text) the deeply frozen value of a JSON text; both give undefined for what
// they leave to the language's own JSON, which is slower, some ten times for writing.
// __text gives the text of every string. Neither
// runs code of a script. Plain are null, booleans, strings, finite numbers but -0,
// dense arrays without other properties, and objects that have nothing but
// enumerable string keys with values; prototypes are the language's own, or null
// for an object. With __text(v, true) null is not.
const (
	// plainDepth is how deep what they take may nest.
	plainDepth = 400
	// plainBytes is about how long a text may be.
	plainBytes = 4 << 20
)

// What the engine says in bits of its structures.
const (
	objectIsFastArray = 0x10 // in TJSObject.F__ccgo16
	propertyFlags     = 26   // TJSShapeProperty.F__ccgo0 >> it
	stringLength      = 1<<31 - 1
	stringIsWide      = 1 << 31 // in TJSString.F__ccgo0
	atomType          = 30      // TJSString.F__ccgo4 >> it
	atomTypeString    = lib.EJS_ATOM_TYPE_STRING
	atomIsNumber      = 1 << 31
	stringBytes       = unsafe.Sizeof(lib.TJSString{})
)

func onText(tls *libc.TLS, ctx uintptr, _ lib.TJSValue, argc int32, argv uintptr) lib.TJSValue {
	vm := vmOf(lib.XJS_GetContextOpaque(tls, ctx))
	if vm == nil || argc < 1 {
		return undefined
	}
	v := argument(argv, 0)
	p := tls.Alloc(smallText)
	defer tls.Free(smallText)
	w := textWriter{vm: vm, buf: unsafe.Slice((*byte)(pointer(p)), smallText)[:0], nulls: argc < 2 || tag(argument(argv, 1)) != lib.EJS_TAG_BOOL || payload(argument(argv, 1)) == 0}
	if tag(v) == lib.EJS_TAG_OBJECT {
		context := (*lib.TJSContext)(pointer(ctx))
		protos := unsafe.Slice((*lib.TJSValue)(pointer(context.Fclass_proto)), lib.EJS_CLASS_ARRAY+1)
		w.objectProto = uintptr(payload(protos[lib.EJS_CLASS_OBJECT]))
		w.arrayProto = uintptr(payload(protos[lib.EJS_CLASS_ARRAY]))
		w.atoms = (*lib.TJSRuntime)(pointer(vm.rt)).Fatom_array
	}
	r := undefined
	switch {
	case w.value(v, 0):
		if len(w.buf) > smallText { // it is in Go's memory
			if p = vm.cBytes(unsafe.String(unsafe.SliceData(w.buf), len(w.buf))); p == 0 {
				return lib.XJS_ThrowOutOfMemory(tls, ctx)
			}
			defer libc.Xfree(tls, p)
		}
		r = lib.XJS_NewStringLen(tls, ctx, p, lib.Tsize_t(len(w.buf)))
	case isString(v):
		r = lib.XJS_JSONStringify(tls, ctx, v, undefined, undefined)
	}
	return r
}

// textWriter appends JSON. Its methods return false for what is not plain.
type textWriter struct {
	vm                      *VM
	buf                     []byte
	objectProto, arrayProto uintptr
	atoms                   uintptr // the engine's table of them
	nulls                   bool    // a null prototype is plain
}

func (w *textWriter) value(v lib.TJSValue, depth int) bool {
	switch tag(v) {
	case lib.EJS_TAG_STRING:
		return w.str(uintptr(payload(v)))
	case lib.EJS_TAG_STRING_ROPE:
		return w.rope(v)
	case lib.EJS_TAG_INT:
		w.buf = strconv.AppendInt(w.buf, int64(int32(payload(v))), 10)
	case lib.EJS_TAG_FLOAT64:
		return w.number(math.Float64frombits(payload(v)))
	case lib.EJS_TAG_BOOL:
		w.buf = strconv.AppendBool(w.buf, uint32(payload(v)) != 0)
	case lib.EJS_TAG_NULL:
		w.buf = append(w.buf, "null"...)
	case lib.EJS_TAG_OBJECT:
		return w.object((*lib.TJSObject)(pointer(uintptr(payload(v)))), depth)
	default:
		return false
	}
	return true
}

func (w *textWriter) number(f float64) bool {
	if math.IsInf(f, 0) || math.IsNaN(f) || f == 0 && math.Signbit(f) {
		return false
	}
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		n := len(w.buf)
		w.buf = strconv.AppendFloat(w.buf, f, 'e', -1, 64)
		// The language writes 1e-7 where Go has 1e-07.
		if end := len(w.buf); end-n >= 4 && w.buf[end-4] == 'e' && w.buf[end-2] == '0' {
			w.buf[end-2] = w.buf[end-1]
			w.buf = w.buf[:end-1]
		}
		return true
	}
	w.buf = strconv.AppendFloat(w.buf, f, 'f', -1, 64)
	return true
}

func (w *textWriter) object(o *lib.TJSObject, depth int) bool {
	if depth > plainDepth || len(w.buf) > plainBytes {
		return false
	}
	shape := (*lib.TJSShape)(pointer(o.Fshape))
	switch o.Fclass_id {
	case lib.EJS_CLASS_ARRAY:
		return shape.Fproto == w.arrayProto && w.array(o, shape, depth)
	case lib.EJS_CLASS_OBJECT:
		if shape.Fproto != w.objectProto && (shape.Fproto != 0 || !w.nulls) {
			return false
		}
	default:
		return false
	}
	keys, values := properties(o, shape)
	open := byte('{')
	for i, k := range keys {
		if k.Fatom == 0 { // deleted
			continue
		}
		if !isEnumerableData(k) || k.Fatom&atomIsNumber != 0 {
			return false // a number's place is not where it stands
		}
		w.buf = append(w.buf, open)
		open = ','
		if !w.key(*(*uintptr)(pointer(w.atoms + uintptr(k.Fatom)*unsafe.Sizeof(w.atoms)))) {
			return false
		}
		w.buf = append(w.buf, ':')
		if !w.value(values[i].Fu.Fvalue, depth+1) {
			return false
		}
	}
	if open == '{' {
		w.buf = append(w.buf, open)
	}
	w.buf = append(w.buf, '}')
	return true
}

// key writes the name that an atom stands for. Names that may be numbers are not
// in the order of the properties.
func (w *textWriter) key(atom uintptr) bool {
	s := (*lib.TJSString)(pointer(atom))
	if s.F__ccgo4>>atomType != atomTypeString {
		return false
	}
	if s.F__ccgo0&stringLength > 0 {
		if c := *(*byte)(pointer(atom + stringBytes)); c >= '0' && c <= '9' {
			return false
		}
	}
	w.quote(atom)
	return true
}

func (w *textWriter) array(o *lib.TJSObject, shape *lib.TJSShape, depth int) bool {
	keys, values := properties(o, shape)
	length := values[0].Fu.Fvalue
	if keys[0].Fatom != lib.EJS_ATOM_length || tag(length) != lib.EJS_TAG_INT {
		return false
	}
	n := int(int32(payload(length)))
	w.buf = append(w.buf, '[')
	if o.F__ccgo16&objectIsFastArray != 0 {
		elements := (*fastArray)(unsafe.Pointer(&o.Fu))
		if len(keys) != 1 || int(elements.count) != n {
			return false
		}
		for i, v := range unsafe.Slice((*lib.TJSValue)(pointer(elements.values)), n) {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			if !w.value(v, depth+1) {
				return false
			}
		}
	} else {
		if len(keys) != n+1 {
			return false
		}
		for i := range n {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			if k := keys[i+1]; k.Fatom != atomIsNumber|lib.TJSAtom(i) || !isEnumerableData(k) || !w.value(values[i+1].Fu.Fvalue, depth+1) {
				return false
			}
		}
	}
	w.buf = append(w.buf, ']')
	return true
}

// fastArray is the union of TJSObject for an array with values.
type fastArray struct {
	size   uint32
	values uintptr
	count  uint32
}

// properties returns the names and flags of an object's properties, and the values.
func properties(o *lib.TJSObject, shape *lib.TJSShape) ([]lib.TJSShapeProperty, []lib.TJSProperty) {
	n := int(shape.Fprop_count)
	// The names come after a table of hashes.
	at := o.Fshape + unsafe.Sizeof(*shape) + (uintptr(shape.Fprop_hash_mask)+1)*unsafe.Sizeof(shape.Fprop_hash_mask)
	return unsafe.Slice((*lib.TJSShapeProperty)(pointer(at)), n), unsafe.Slice((*lib.TJSProperty)(pointer(o.Fprop)), n)
}

func isEnumerableData(k lib.TJSShapeProperty) bool {
	return k.F__ccgo0>>propertyFlags&(lib.MJS_PROP_TMASK|lib.MJS_PROP_ENUMERABLE) == lib.MJS_PROP_ENUMERABLE
}

// rope is quote for a string that is not yet in one piece.
func (w *textWriter) rope(v lib.TJSValue) bool {
	if int((*lib.TJSStringRope)(pointer(uintptr(payload(v)))).Flen1)+len(w.buf) > plainBytes {
		return false
	}
	flat := lib.XJS_ToString(w.vm.tls, w.vm.ctx, v)
	if isException(flat) {
		w.vm.dropException()
		return false
	}
	ok := w.str(uintptr(payload(flat)))
	w.vm.free(flat)
	return ok
}

// str is quote for a string that is a value.
func (w *textWriter) str(p uintptr) bool {
	if int((*lib.TJSString)(pointer(p)).F__ccgo0&stringLength)+len(w.buf) > plainBytes {
		return false
	}
	w.quote(p)
	return true
}

// quote writes a string of the engine.
func (w *textWriter) quote(p uintptr) {
	head := (*lib.TJSString)(pointer(p)).F__ccgo0
	n := int(head & stringLength)
	w.buf = append(w.buf, '"')
	if head&stringIsWide == 0 {
		w.latin1(unsafe.Slice((*byte)(pointer(p+stringBytes)), n))
	} else {
		w.utf16(unsafe.Slice((*uint16)(pointer(p+stringBytes)), n))
	}
	w.buf = append(w.buf, '"')
}

func (w *textWriter) latin1(s []byte) {
	from := 0
	for i, c := range s {
		if isBare(uint16(c)) {
			continue
		}
		w.buf = append(w.buf, s[from:i]...)
		from = i + 1
		if c < utf8.RuneSelf {
			w.escape(uint16(c))
		} else {
			w.buf = utf8.AppendRune(w.buf, rune(c))
		}
	}
	w.buf = append(w.buf, s[from:]...)
}

func (w *textWriter) utf16(s []uint16) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case isBare(c):
			w.buf = append(w.buf, byte(c))
		case c < utf8.RuneSelf:
			w.escape(c)
		case !utf16.IsSurrogate(rune(c)):
			w.buf = utf8.AppendRune(w.buf, rune(c))
		default:
			r := rune(utf8.RuneError)
			if i+1 < len(s) {
				r = utf16.DecodeRune(rune(c), rune(s[i+1]))
			}
			if r == utf8.RuneError {
				w.escape(c)
				continue
			}
			w.buf = utf8.AppendRune(w.buf, r)
			i++
		}
	}
}

// isBare reports whether a UTF-16 unit is one byte of the text, as it is.
func isBare(c uint16) bool { return c < utf8.RuneSelf && c >= ' ' && c != '"' && c != '\\' }

func (w *textWriter) escape(c uint16) {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		w.buf = append(w.buf, '\\', byte(c))
	case '\b':
		w.buf = append(w.buf, `\b`...)
	case '\f':
		w.buf = append(w.buf, `\f`...)
	case '\n':
		w.buf = append(w.buf, `\n`...)
	case '\r':
		w.buf = append(w.buf, `\r`...)
	case '\t':
		w.buf = append(w.buf, `\t`...)
	default:
		w.buf = append(w.buf, '\\', 'u', hex[c>>12], hex[c>>8&15], hex[c>>4&15], hex[c&15])
	}
}
