package qjs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Compile returns the bytecode of a script, under a file name that errors and
// stacks will show. Source that does not parse is an *Error of KindSyntax.
// Compiling runs nothing and is not interrupted: bound the length of src.
func (vm *VM) Compile(src, filename string) ([]byte, error) {
	return vm.compile(src, filename, 0)
}

// CompileStripped is Compile for code whose functions need not show their
// source: smaller, and faster to read.
func (vm *VM) CompileStripped(src, filename string) ([]byte, error) {
	return vm.compile(src, filename, lib.MJS_STRIP_SOURCE|lib.MJS_STRIP_DEBUG)
}

func (vm *VM) compile(src, filename string, strip int32) (code []byte, err error) {
	err = vm.enter(func() error {
		v, err := vm.parse(src, filename, lib.MJS_EVAL_TYPE_GLOBAL, strip)
		if err != nil {
			return err
		}
		code, err = vm.writeBytecode(v)
		vm.free(v)
		return err
	})
	return code, err
}

// parse compiles a script or a module and leaves it in the engine.
func (vm *VM) parse(src, filename string, kind, strip int32) (lib.TJSValue, error) {
	if strings.IndexByte(filename, 0) >= 0 {
		return undefined, errors.New("compile: the file name has a zero byte")
	}
	src = strings.ToValidUTF8(src, "\uFFFD")
	text, name := vm.cBytes(src), vm.cBytes(strings.ToValidUTF8(filename, "\uFFFD"))
	defer libc.Xfree(vm.tls, text)
	defer libc.Xfree(vm.tls, name)
	if text == 0 || name == 0 {
		return undefined, outOfMemory()
	}
	lib.XJS_SetStripInfo(vm.tls, vm.rt, strip)
	v := lib.XJS_Eval(vm.tls, vm.ctx, text, lib.Tsize_t(len(src)), name, kind|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
	lib.XJS_SetStripInfo(vm.tls, vm.rt, 0)
	if isException(v) {
		return undefined, vm.syntaxError()
	}
	return v, nil
}

// Script is a compiled script or module inside a VM. It is run once, or freed.
type Script struct{ v Value }

// Free gives up a script that is not to be run. It may be called again, and after
// it has run.
func (s Script) Free() { s.v.Free() }

// CompileScript is Compile for a script that this VM itself runs: it stays where
// it is.
func (vm *VM) CompileScript(src, filename string) (Script, error) {
	return vm.compileKept(src, filename, lib.MJS_EVAL_TYPE_GLOBAL)
}

// CompileModule is CompileScript for an ES module, which is run with RunModule.
// There is nothing that it could import: a module that imports is an *Error.
func (vm *VM) CompileModule(src, filename string) (Script, error) {
	return vm.compileKept(src, filename, lib.MJS_EVAL_TYPE_MODULE)
}

func (vm *VM) compileKept(src, filename string, kind int32) (Script, error) {
	var s Script
	err := vm.enter(func() error {
		v, err := vm.parse(src, filename, kind, 0)
		if err == nil {
			s.v = vm.keep(v)
		}
		return err
	})
	if err != nil {
		s.Free()
		return Script{}, err
	}
	return s, nil
}

// RunScript evaluates a compiled script and returns its completion value, which
// the caller frees. The script cannot be run again.
func (vm *VM) RunScript(s Script) (Value, error) {
	return vm.run(func() (lib.TJSValue, error) {
		script, err := vm.takeScript(s, lib.EJS_TAG_FUNCTION_BYTECODE)
		if err != nil {
			return undefined, err
		}
		return vm.evalFunction(script)
	})
}

// RunModule evaluates a compiled module, up to its first await. It returns the
// promise of its end, which is rejected with what the module throws, and its
// namespace, which has what it exports once the promise is fulfilled. The caller frees
// both; the module itself stays until the VM is closed, and cannot be run again.
func (vm *VM) RunModule(s Script) (namespace, end Value, err error) {
	err = vm.enter(func() error {
		module, err := vm.takeScript(s, lib.EJS_TAG_MODULE)
		if err != nil {
			return err
		}
		address := *(*uintptr)(unsafe.Pointer(&module.Fu))
		promise, err := vm.evalFunction(module)
		if err != nil {
			return err
		}
		vm.forgetBody(promise)
		end = vm.keep(promise)
		names := lib.XJS_GetModuleNamespace(vm.tls, vm.ctx, address)
		if isException(names) {
			return vm.exception()
		}
		namespace = vm.keep(names)
		return nil
	})
	if err != nil {
		namespace.Free()
		end.Free()
		return Value{}, Value{}, err
	}
	return namespace, end, nil
}

// takeScript takes the engine's value out of a Script that has not been run.
func (vm *VM) takeScript(s Script, kind int32) (lib.TJSValue, error) {
	v, ok := vm.values[s.v.id]
	switch {
	case !ok || s.v.vm != vm:
		return undefined, errors.New("run script: it has been run or freed, or is another VM's")
	case tag(v) != kind:
		return undefined, errors.New("run script: a module is run with RunModule, a script with RunScript")
	}
	delete(vm.values, s.v.id)
	return v, nil
}

func (vm *VM) writeBytecode(v lib.TJSValue) ([]byte, error) {
	const size = 8
	length := vm.tls.Alloc(size)
	defer vm.tls.Free(size)
	p := lib.XJS_WriteObject(vm.tls, vm.ctx, length, v, lib.MJS_WRITE_OBJ_BYTECODE)
	if p == 0 {
		return nil, vm.exception()
	}
	code := bytes.Clone(unsafe.Slice((*byte)(pointer(p)), *(*lib.Tsize_t)(pointer(length))))
	lib.Xjs_free(vm.tls, vm.ctx, p)
	return code, nil
}

// RunBytecode evaluates a compiled script and returns its completion value,
// which the caller frees. The bytecode is trusted; see the package comment.
func (vm *VM) RunBytecode(code []byte) (Value, error) {
	return vm.run(func() (lib.TJSValue, error) { return vm.evaluate(code) })
}

// run enters the VM for a value that the caller frees.
func (vm *VM) run(f func() (lib.TJSValue, error)) (Value, error) {
	var result Value
	err := vm.enter(func() error {
		v, err := f()
		if err != nil {
			return err
		}
		result = vm.keep(v)
		return nil
	})
	if err != nil {
		result.Free()
		return Value{}, err
	}
	return result, nil
}

// EvalBytecode is RunBytecode without the value, for the prelude.
func (vm *VM) EvalBytecode(code []byte) error {
	return vm.enter(func() error {
		v, err := vm.evaluate(code)
		if err == nil {
			vm.free(v)
		}
		return err
	})
}

func (vm *VM) evaluate(code []byte) (lib.TJSValue, error) {
	if len(code) == 0 {
		return undefined, errors.New("run bytecode: it is empty")
	}
	p := vm.cBytes(string(code))
	if p == 0 {
		return undefined, outOfMemory()
	}
	script := lib.XJS_ReadObject(vm.tls, vm.ctx, p, lib.Tsize_t(len(code)), lib.MJS_READ_OBJ_BYTECODE)
	libc.Xfree(vm.tls, p)
	if isException(script) {
		return undefined, fmt.Errorf("read bytecode: %w", vm.exception())
	}
	if tag(script) != lib.EJS_TAG_FUNCTION_BYTECODE {
		vm.free(script)
		return undefined, errors.New("run bytecode: it is not that of a script")
	}
	return vm.evalFunction(script)
}

// evalFunction runs a compiled script and takes it over.
func (vm *VM) evalFunction(script lib.TJSValue) (lib.TJSValue, error) {
	v := lib.XJS_EvalFunction(vm.tls, vm.ctx, script)
	if isException(v) {
		return undefined, vm.exception()
	}
	return v, nil
}

// PendingJobs reports whether promise jobs wait.
func (vm *VM) PendingJobs() bool {
	return vm.usable() == nil && lib.XJS_IsJobPending(vm.tls, vm.rt) != 0
}

// RunJobs runs promise jobs in their order, those they add too, until none is
// left, limit of them have run, or the VM is to stop. It returns how many ran and whether
// some are left; jobs that an interrupt left over stay queued. What a job
// throws becomes a rejection, not an error here.
//
// Called from a host function, it runs jobs in the middle of the script's
// statement, which a script does not expect.
func (vm *VM) RunJobs(limit int) (ran int, more bool, err error) {
	err = vm.enter(func() error {
		for ran < limit && lib.XJS_IsJobPending(vm.tls, vm.rt) != 0 {
			if vm.stop() {
				vm.fired = true
				return nil
			}
			ran++
			if lib.XJS_ExecutePendingJob(vm.tls, vm.rt, 0) < 0 {
				return vm.exception()
			}
			if vm.fired || vm.hostErr != nil {
				return nil //nolint:nilerr // enter reports it, classified
			}
		}
		return nil
	})
	return ran, vm.PendingJobs(), err
}
