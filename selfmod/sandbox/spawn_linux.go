package sandbox

import "syscall"

// selfExe survives that the file is replaced or removed while dsh runs.
const selfExe = "/proc/self/exe"

// sysProcAttr binds the worker to its parent: it is killed with it. The thread
// that starts it must stay alive as long as the worker does.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
