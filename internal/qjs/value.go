package qjs

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

const valueSize = unsafe.Sizeof(lib.TJSValue{})

var (
	undefined = lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED}
	exception = lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
)

// Names as the engine reads them. They are package variables so that their
// addresses stay.
var (
	nameHost    = []byte("__host\x00")
	nameHold    = []byte("__hold\x00")
	nameText    = []byte("__text\x00")
	nameData    = []byte("__data\x00")
	nameValue   = []byte("__value\x00")
	nameName    = []byte("name\x00")
	nameMessage = []byte("message\x00")
	nameStack   = []byte("stack\x00")
	nameCode    = []byte("code\x00")
	nameFile    = []byte("fileName\x00")
	nameLine    = []byte("lineNumber\x00")
	nameColumn  = []byte("columnNumber\x00")
)

func tag(v lib.TJSValue) int32              { return int32(v.Ftag) }
func isException(v lib.TJSValue) bool       { return tag(v) == lib.EJS_TAG_EXCEPTION }
func payload(v lib.TJSValue) uint64         { return *(*uint64)(unsafe.Pointer(&v)) }
func (vm *VM) free(v lib.TJSValue)          { lib.XFreeValue(vm.tls, vm.ctx, v) }
func withPayload(v *lib.TJSValue, p uint64) { *(*uint64)(unsafe.Pointer(v)) = p }

func isString(v lib.TJSValue) bool {
	return tag(v) == lib.EJS_TAG_STRING || tag(v) == lib.EJS_TAG_STRING_ROPE
}

// Value is a value inside a VM, to be handed back to it with Call. It is valid
// until Free or until its VM closes. The zero Value is undefined.
type Value struct {
	vm *VM
	id uint64
}

// keep takes v over and returns what stands for it.
func (vm *VM) keep(v lib.TJSValue) Value {
	vm.lastValue++
	vm.values[vm.lastValue] = v
	return Value{vm: vm, id: vm.lastValue}
}

// Free gives the value up. It may be called again, and after the VM closed.
func (v Value) Free() {
	if v.vm == nil || v.vm.usable() != nil {
		return
	}
	if raw, ok := v.vm.values[v.id]; ok {
		delete(v.vm.values, v.id)
		v.vm.free(raw)
	}
}

// IsFunction reports whether the value can be called.
func (v Value) IsFunction() bool {
	if v.vm == nil || v.vm.usable() != nil {
		return false
	}
	raw, ok := v.vm.values[v.id]
	return ok && lib.XJS_IsFunction(v.vm.tls, v.vm.ctx, raw) != 0
}

// Text returns a string, number or boolean as text, with true; false for
// everything else and for a freed value. It runs no code.
func (v Value) Text() (string, bool) {
	if v.vm == nil {
		return "", false
	}
	var text string
	var ok bool
	err := v.vm.guard(func() error {
		if raw, found := v.vm.values[v.id]; found && isPlain(raw) {
			if text, ok = v.vm.text(raw); !ok {
				v.vm.dropException()
			}
		}
		return nil
	})
	return text, ok && err == nil
}

// isPlain reports whether v becomes text without running code.
func isPlain(v lib.TJSValue) bool {
	switch tag(v) {
	case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE, lib.EJS_TAG_INT, lib.EJS_TAG_FLOAT64, lib.EJS_TAG_BOOL:
		return true
	}
	return false
}

// Call calls the held function. Arguments are string, int, int64, float64, bool, nil (for
// undefined) or a Value of this VM. A string, number or boolean result is
// returned as text with true, undefined as "" with false; any other result is
// an error. Promise jobs do not run; see RunJobs.
func (vm *VM) Call(args ...any) (result string, defined bool, err error) {
	err = vm.enter(func() error {
		if !vm.hasHeld {
			return ErrNoFunction
		}
		v, err := vm.call(args)
		if err != nil {
			return err
		}
		if tag(v) == lib.EJS_TAG_UNDEFINED {
			return nil
		}
		if !isPlain(v) {
			vm.free(v)
			return fmt.Errorf("call held function: it returned neither text nor undefined")
		}
		var ok bool
		if result, ok = vm.text(v); !ok {
			err = vm.exception()
		}
		vm.free(v)
		defined = ok
		return err
	})
	if err != nil {
		return "", false, err
	}
	return result, defined, nil
}

// call runs the held function with args converted. What a panic of the engine
// leaves unfreed is lost with the VM.
func (vm *VM) call(args []any) (lib.TJSValue, error) {
	size := max(1, len(args)) * int(valueSize)
	argv := vm.tls.Alloc(size)
	defer vm.tls.Free(size)
	raw := unsafe.Slice((*lib.TJSValue)(pointer(argv)), len(args))
	var err error
	made := 0
	for i, a := range args {
		if raw[i], err = vm.convert(a); err != nil {
			err = fmt.Errorf("call held function: argument %d: %w", i, err)
			break
		}
		made++
	}
	v := undefined
	if err == nil {
		v = lib.XJS_Call(vm.tls, vm.ctx, vm.held, undefined, int32(len(args)), argv)
		if isException(v) {
			err = vm.exception()
		}
	}
	for _, a := range raw[:made] {
		vm.free(a)
	}
	return v, err
}

// convert returns a as an engine value that the caller frees.
func (vm *VM) convert(a any) (lib.TJSValue, error) {
	switch a := a.(type) {
	case string:
		return vm.newString(a)
	case int:
		return newNumber(int64(a)), nil
	case int64:
		return newNumber(a), nil
	case float64:
		return newFloat(a), nil
	case bool:
		v := lib.TJSValue{Ftag: lib.EJS_TAG_BOOL}
		if a {
			withPayload(&v, 1)
		}
		return v, nil
	case nil:
		return undefined, nil
	case Value:
		if a.vm == nil {
			return undefined, nil
		}
		if a.vm != vm {
			return undefined, fmt.Errorf("the value belongs to another VM")
		}
		raw, ok := vm.values[a.id]
		if !ok {
			return undefined, ErrFreed
		}
		return lib.XDupValue(vm.tls, vm.ctx, raw), nil
	}
	return undefined, fmt.Errorf("a %T cannot cross; want string, int, int64, float64, bool, nil or Value", a)
}

func newNumber(n int64) lib.TJSValue {
	if int64(int32(n)) != n {
		return newFloat(float64(n))
	}
	v := lib.TJSValue{Ftag: lib.EJS_TAG_INT}
	withPayload(&v, uint64(uint32(n)))
	return v
}

func newFloat(f float64) lib.TJSValue {
	v := lib.TJSValue{Ftag: lib.EJS_TAG_FLOAT64}
	*(*float64)(unsafe.Pointer(&v)) = f
	return v
}

// smallText is how long a string may be to pass over the engine's own stack.
const smallText = 4096

// newString copies s into the engine. Bytes that are not UTF-8 become U+FFFD.
func (vm *VM) newString(s string) (lib.TJSValue, error) {
	v := vm.newStringRaw(s)
	if isException(v) {
		return undefined, vm.exception()
	}
	return v, nil
}

// newStringRaw is newString that leaves the exception pending.
func (vm *VM) newStringRaw(s string) lib.TJSValue {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	n := len(s)
	if n <= smallText {
		p := vm.tls.Alloc(smallText)
		defer vm.tls.Free(smallText)
		copy(unsafe.Slice((*byte)(pointer(p)), n), s)
		return lib.XJS_NewStringLen(vm.tls, vm.ctx, p, lib.Tsize_t(n))
	}
	p := vm.cBytes(s)
	if p == 0 {
		return lib.XJS_ThrowOutOfMemory(vm.tls, vm.ctx)
	}
	defer libc.Xfree(vm.tls, p)
	return lib.XJS_NewStringLen(vm.tls, vm.ctx, p, lib.Tsize_t(n))
}

// cBytes returns a copy of s with a zero byte after it, outside the VM's limit,
// to be freed with libc.Xfree; 0 when there is no memory.
func (vm *VM) cBytes(s string) uintptr {
	p := libc.Xmalloc(vm.tls, lib.Tsize_t(len(s)+1))
	if p == 0 {
		vm.oom, vm.sawOOM = true, true
		return 0
	}
	b := unsafe.Slice((*byte)(pointer(p)), len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	return p
}

// text returns the text of v, which must not be an object unless code may run.
// It is false with the exception pending when that fails. Half a surrogate
// pair, which UTF-8 cannot hold, becomes U+FFFD.
func (vm *VM) text(v lib.TJSValue) (string, bool) {
	const size = 8
	length := vm.tls.Alloc(size)
	defer vm.tls.Free(size)
	p := lib.XJS_ToCStringLen2(vm.tls, vm.ctx, length, v, 0)
	if p == 0 {
		return "", false
	}
	b := unsafe.Slice((*byte)(pointer(p)), *(*lib.Tsize_t)(pointer(length)))
	s := wellFormed(b)
	lib.XJS_FreeCString(vm.tls, vm.ctx, p)
	return s, true
}

// wellFormed copies b, UTF-8 as the engine writes it: a lone surrogate comes as
// the three bytes of its code point, ED A0..BF xx, as long as U+FFFD is.
func wellFormed(b []byte) string {
	var fixed []byte
	for i := 0; ; i += 3 {
		j := bytes.IndexByte(b[i:], 0xED)
		if j < 0 || i+j+2 >= len(b) {
			break
		}
		if i += j; b[i+1] < 0xA0 {
			continue
		}
		if fixed == nil {
			fixed = bytes.Clone(b)
		}
		copy(fixed[i:], "\uFFFD")
	}
	if fixed != nil {
		return string(fixed)
	}
	return string(b)
}
