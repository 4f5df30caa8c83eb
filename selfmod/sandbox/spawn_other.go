//go:build !linux

package sandbox

import "syscall"

// selfExe is found with os.Executable where there is no /proc.
const selfExe = ""

// sysProcAttr asks for nothing: the worker ends when its standard input closes.
func sysProcAttr() *syscall.SysProcAttr { return nil }
