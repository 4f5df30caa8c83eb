// Package qjs is a small binding over the QuickJS engine (the Go translation
// modernc.org/libquickjs): virtual machines that run code nobody has vouched
// for, each within its own bounds of time, memory and stack.
//
// # Shape
//
// Text is all that crosses. A script reaches Go through one function,
// __host(op, a, b, …), answered by what SetHost installed; Go reaches the
// script through one function that the script handed over with __hold(fn),
// called by VM.Call. Objects cross as JSON text, so no engine value needs counting
// in Go. Two more functions read and write such text for scripts, where it is plain
// data, faster than the language's own: __text(v) and __data(text), see text.go; and
// __value(promise) looks at a promise, see settled.go. All five globals can be deleted
// by the first script that runs (the prelude), which is then the only one that holds
// them.
//
//	vm, err := qjs.New(qjs.Options{})
//	defer vm.Close()
//	vm.SetHost(func(op string, args []string) (string, bool, error) { … })
//	err = vm.EvalBytecode(prelude)             // calls __hold(dispatch)
//	code, err := vm.Compile(source, "mounts/demo.js")
//	body, err := vm.RunBytecode(code)          // a completion value
//	vm.SetDeadline(time.Now().Add(5 * time.Second))
//	text, defined, err := vm.Call("mount", 7, body)
//	ran, more, err := vm.RunJobs(1 << 20)      // promise jobs run only here
//	left, _ := vm.Unhandled()
//
// # Who owns what
//
//   - A VM belongs to its caller: Close frees everything in it. There is no
//     finalizer; a VM that is not closed leaks memory that the Go heap does not
//     show.
//   - A Value (what RunBytecode returns) belongs to the caller until Free, or
//     until the VM closes. Free twice is harmless; using a freed Value is an error.
//   - The held function and the rejected promises that Unhandled will report
//     belong to the VM.
//   - Strings are copied in both directions; nobody keeps the other's bytes.
//   - Bytecode belongs to the caller. The engine does not check it: run only
//     what Compile of this process or build made, with the same EngineVersion.
//
// # Concurrency
//
// A VM is used by one goroutine at a time, any goroutine, and the caller does
// the locking. Only Interrupt, ClearInterrupt, SetDeadline and Deadline may be
// called from anywhere at any time, also after Close; Poke until Close begins. VMs are independent and
// run in parallel. The package starts no goroutine.
//
// A host function may use the VM that called it, or another one, which may call
// back: entries nest, and a nested entry leaves no engine exception behind.
//
// # Time
//
// The deadline and the interrupt flag are looked at by the engine every few
// thousand steps and after every big allocation, by regular expressions too, at the start of every entry, when
// a host function returns, and between promise jobs. Both stand until the
// caller changes them: an entry does not arm or clear anything. When one of
// them stops an entry, that entry fails with KindInterrupted, whatever the
// script caught or returned. The deadline may be moved while entries nest: a
// host function that should not cost its caller's time clears it and sets it
// to later when it is done. Some native loops (an indexOf over an array of
// length 4e9) look at neither: only the end of the process stops those.
//
// # Errors
//
// What a script throws, or a bound it meets, is an *Error with its Kind. A
// failing allocation is recorded in the allocator itself, so that running out
// of memory is recognised even when the engine had no room for the text; a VM
// of which OutOfMemory reports true is best closed. A Go panic out of the
// engine (memory faults become one when the caller's goroutine has set
// debug.SetPanicOnFault) is returned as *Panic and breaks the VM: every later
// call returns ErrBroken, and Close leaks the engine's memory rather than touch
// it. A panic in a host function is returned as *Panic too, but stops only the
// entry that called it. runtime.Goexit in a host function breaks the VM.
//
// Nothing here reaches for files, the network, the clock or modules; what a
// script may use of the language's own globals is the prelude's business.
package qjs
