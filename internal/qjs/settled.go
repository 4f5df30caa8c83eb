package qjs

import (
	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// __value(v) is the value of a promise that is fulfilled, if no promise job waits:
// then the job of a handler would be the next thing to run, and who asks may go on
// at once instead. It is v itself for everything else, of which a promise is never
// the value.
func onValue(tls *libc.TLS, ctx uintptr, _ lib.TJSValue, argc int32, argv uintptr) lib.TJSValue {
	vm := vmOf(lib.XJS_GetContextOpaque(tls, ctx))
	if vm == nil || argc < 1 {
		return undefined
	}
	v := argument(argv, 0)
	if tag(v) == lib.EJS_TAG_OBJECT && lib.XJS_PromiseState(tls, ctx, v) == lib.EJS_PROMISE_FULFILLED && lib.XJS_IsJobPending(tls, vm.rt) == 0 {
		return lib.XJS_PromiseResult(tls, ctx, v)
	}
	return lib.XDupValue(tls, ctx, v)
}
