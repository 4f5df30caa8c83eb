package qjs

import (
	"unicode/utf8"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// This file turns exceptions into errors and back.

func outOfMemory() *Error {
	return &Error{Kind: KindOutOfMemory, Name: "InternalError", Message: "out of memory"}
}

// interrupted says which of the two stopped the entry.
func (vm *VM) interrupted(stack string) *Error {
	e := &Error{Kind: KindInterrupted, Name: "InternalError", Message: "interrupted: the deadline has passed", Stack: stack}
	if vm.interrupt.Load() {
		e.Message = "interrupted on request"
	}
	e.position()
	return e
}

// dropException forgets the pending exception.
func (vm *VM) dropException() {
	v := lib.XJS_GetException(vm.tls, vm.ctx)
	lib.XJS_SetUncatchableException(vm.tls, vm.ctx, 0)
	vm.free(v)
}

// exception takes the pending exception out of the engine as an error.
func (vm *VM) exception() error {
	v := lib.XJS_GetException(vm.tls, vm.ctx)
	lib.XJS_SetUncatchableException(vm.tls, vm.ctx, 0)
	e := vm.describe(v)
	if e.Stack != "" {
		e.position()
	}
	vm.free(v)
	return e
}

// syntaxError is exception for a failed compilation.
func (vm *VM) syntaxError() error {
	v := lib.XJS_GetException(vm.tls, vm.ctx)
	e := vm.describe(v)
	if e.Kind == KindThrown {
		e.Kind = KindSyntax
	}
	if tag(v) == lib.EJS_TAG_OBJECT {
		e.File = vm.textProperty(v, nameFile)
		e.Line = vm.numberProperty(v, nameLine)
		e.Column = vm.numberProperty(v, nameColumn)
	}
	vm.free(v)
	return e
}

// describe reads a thrown value, borrowed. Getters of the script may run; what
// they throw is dropped, and the deadline stops them too.
func (vm *VM) describe(v lib.TJSValue) *Error {
	e := &Error{}
	oom, isError := vm.oom, false
	switch {
	case tag(v) == lib.EJS_TAG_OBJECT:
		isError = lib.XJS_IsError(vm.tls, vm.ctx, v) != 0
		e.Stack = vm.textProperty(v, nameStack)
		if vm.fired {
			return vm.interrupted(e.Stack)
		}
		e.Name = vm.textProperty(v, nameName)
		e.Message = vm.textProperty(v, nameMessage)
		e.Code = vm.textProperty(v, nameCode)
		if e.Message == "" && !isError {
			e.Message = vm.anyText(v)
		}
	case vm.fired:
		return vm.interrupted("")
	case tag(v) == lib.EJS_TAG_UNINITIALIZED:
		e.Message = "the engine gave no reason"
	case tag(v) == lib.EJS_TAG_SYMBOL:
		e.Message = "a symbol"
	default:
		e.Message = vm.anyText(v)
	}
	e.Kind = kindOf(e, isError, oom, tag(v))
	if e.Kind == KindOutOfMemory {
		e.Name, e.Message = "InternalError", "out of memory"
	}
	return e
}

// kindOf recognises the engine's own errors. Without memory for one it throws
// null, nothing, or an error without text; in a regular expression it throws a
// SyntaxError. Those count as such only when an allocation did fail.
func kindOf(e *Error, isError, oom bool, tag int32) Kind {
	switch {
	case isError && e.Name == "InternalError" && e.Message == "out of memory":
		return KindOutOfMemory
	case oom && (tag == lib.EJS_TAG_NULL || tag == lib.EJS_TAG_UNINITIALIZED || isError && e.Message == "" ||
		isError && e.Name == "SyntaxError" && e.Message == "out of memory"):
		return KindOutOfMemory
	case isError && e.Message == "stack overflow" && (e.Name == "InternalError" || e.Name == "SyntaxError"):
		return KindStackOverflow
	}
	return KindThrown
}

// property returns a property that the caller frees; undefined when reading it
// throws.
func (vm *VM) property(v lib.TJSValue, name []byte) lib.TJSValue {
	p := lib.XJS_GetPropertyStr(vm.tls, vm.ctx, v, uintptr(unsafe.Pointer(&name[0])))
	if isException(p) {
		vm.dropException()
		return undefined
	}
	return p
}

// textProperty returns a property that is a string, cut; "" for any other.
func (vm *VM) textProperty(v lib.TJSValue, name []byte) string {
	p := vm.property(v, name)
	text := ""
	if isString(p) {
		text = vm.anyText(p)
	}
	vm.free(p)
	return text
}

func (vm *VM) numberProperty(v lib.TJSValue, name []byte) int {
	p := vm.property(v, name)
	if tag(p) == lib.EJS_TAG_INT {
		return int(int32(payload(p)))
	}
	vm.free(p)
	return 0
}

// anyText is text, cut, and "" when it fails.
func (vm *VM) anyText(v lib.TJSValue) string {
	s, ok := vm.text(v)
	if !ok {
		vm.dropException()
	}
	return cut(s)
}

// cut shortens s to MaxText bytes at a character's start.
func cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	n := MaxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// throw throws an Error with a message of any length.
func (vm *VM) throw(message string) lib.TJSValue {
	text := vm.newStringRaw(message)
	if isException(text) {
		return text
	}
	e := lib.XJS_NewError(vm.tls, vm.ctx)
	if isException(e) {
		vm.free(text)
		return e
	}
	// The property takes text over, also when it fails.
	if lib.XJS_DefinePropertyValueStr(vm.tls, vm.ctx, e, uintptr(unsafe.Pointer(&nameMessage[0])), text,
		lib.MJS_PROP_WRITABLE|lib.MJS_PROP_CONFIGURABLE) < 0 {
		vm.free(e)
		return exception
	}
	return lib.XJS_Throw(vm.tls, vm.ctx, e)
}

// throwUncatchable throws what no catch or finally of the script runs for.
func (vm *VM) throwUncatchable(message string) lib.TJSValue {
	v := vm.throw(message)
	lib.XJS_SetUncatchableException(vm.tls, vm.ctx, 1)
	return v
}
