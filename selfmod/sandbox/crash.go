package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// crashed is the exit status of a Go program that panics or runs out of stack or
// memory. One that gives up by itself, with another, blames nobody.
const crashed = 2

// exitStatus is that of a process that ended by itself; -1: a signal ended it.
func exitStatus(state error) int {
	var exit *exec.ExitError
	if errors.As(state, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// suspectLocked names the mount to blame for a crash; 0: none. Only what the
// crash itself says counts: a worker that was ended from outside ended for
// nobody's fault. The parser's crash is that of the only mount that was being
// loaded, the engine's that of the only one that had calls in it, and memory was
// used up by the one that holds most of it and is in a call. One that is only being
// loaded when the others hold too much is not to blame.
func (p *process) suspectLocked(status int) uint32 {
	if status != crashed {
		return 0
	}
	loading, entered := map[uint32]*VM{}, map[uint32]*VM{}
	for _, c := range p.calls {
		if c.kind == wire.Unload {
			continue
		}
		entered[c.vm.num] = c.vm
		if c.kind == wire.Load {
			loading[c.vm.num] = c.vm
		}
	}
	c := p.tail.crash()
	budget := int64(p.cfg.WorkerMemoryMB) << 20
	switch {
	case c.memory && len(p.vms) == 1:
		return only(entered)
	case c.memory && biggest(entered, budget/memoryShare) != 0:
		return biggest(entered, budget/memoryShare)
	case c.parser && !(c.memory && heldBy(p.vms) > budget/2):
		return only(loading)
	case c.engine && !c.memory:
		return only(entered)
	}
	return 0
}

// memoryShare is the part of the worker's memory that a mount must hold to have
// used it up. A mount may hold half as much again when it is told of.
const memoryShare = 10

// only is the number of the one there is; 0: there is none, or are several.
func only(vms map[uint32]*VM) uint32 {
	if len(vms) == 1 {
		for num := range vms {
			return num
		}
	}
	return 0
}

// biggest is the number of the one that holds at least that many bytes, and twice as
// many as any other; 0: there is none.
func biggest(vms map[uint32]*VM, least int64) (num uint32) {
	var most, second int64
	for n, vm := range vms {
		switch size := vm.Counters().Heap; {
		case size > most:
			num, most, second = n, size, most
		case size > second:
			second = size
		}
	}
	if most < least || most/2 < second {
		return 0
	}
	return num
}

// heldBy is how many bytes they hold together.
func heldBy(vms map[uint32]*VM) (sum int64) {
	for _, vm := range vms {
		sum += vm.Counters().Heap
	}
	return sum
}

// tail keeps the first bytes of what the worker writes to its standard error
// since it last was quiet: the text of a crash begins there.
type tail struct {
	out io.Writer
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := tailSize - t.buf.Len(); room > 0 {
		t.buf.Write(b[:min(room, len(b))])
		if t.out != nil {
			_, _ = t.out.Write(b[:min(room, len(b))])
		}
	}
	return len(b), nil
}

// fatal is the first line of a crash, without what follows: our stack is
// nobody's business.
func (t *tail) fatal() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(t.buf.String()) {
		line = strings.TrimSpace(line)
		line, gaveUp := strings.CutPrefix(line, "dsh worker: ")
		if gaveUp || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, outOfMemory) {
			return plain.Line(line, limits.Preview)
		}
	}
	return ""
}

// crash is what a worker's last words say about what mounts did.
type crash struct {
	memory bool // there was no more of it
	parser bool // inside what reads a source
	engine bool // inside the engine
}

// How a Go program begins to tell of its crash. One that got a signal from outside
// begins with the signal's name.
const (
	outOfMemory = "runtime: out of memory"
	fatalError  = "fatal error: "
	goPanic     = "panic: "
)

// Parts of the names of functions that stand in the trace of a crash.
var (
	inParser = []string{"github.com/evanw/esbuild/", "/selfmod/sandbox/worker/compile."}
	inEngine = []string{"modernc.org/libquickjs.", "/internal/qjs."}
)

// closingVM is what closes machines that are not there any more.
const closingVM = "/selfmod/sandbox/worker.(*spares)."

// crash reads the last words.
func (t *tail) crash() crash {
	t.mu.Lock()
	text := t.buf.String()
	t.mu.Unlock()
	begin := -1
	for _, head := range []string{outOfMemory, fatalError, goPanic} {
		if i := lineWith(text, head); i >= 0 && (begin < 0 || i < begin) {
			begin = i
		}
	}
	if begin < 0 {
		return crash{}
	}
	text = text[begin:]
	has := func(part string) bool { return strings.Contains(text, part) }
	first, _, _ := strings.Cut(text, "\n\n") // the trace follows after a blank line
	return crash{
		memory: strings.Contains(first, "out of memory") || strings.Contains(first, "cannot allocate"),
		parser: slices.ContainsFunc(inParser, has),
		engine: slices.ContainsFunc(inEngine, has) && !has(closingVM),
	}
}

// lineWith is where the first line with that beginning begins; -1: there is none.
func lineWith(text, head string) int {
	if strings.HasPrefix(text, head) {
		return 0
	}
	if i := strings.Index(text, "\n"+head); i >= 0 {
		return i + 1
	}
	return -1
}
