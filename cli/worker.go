package cli

import (
	"os"

	"github.com/dsh-go/dsh/selfmod/sandbox/worker"
)

// workerProgram is the executable of workers; empty means this program. Tests
// name another one, since a test binary is a poor worker.
var workerProgram string

// runWorker is the process in which mounted code runs. It knows no command line
// for people: what it is to do comes over its standard input.
func runWorker() int { return worker.Main(os.Args[2:]) }
