package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Hello is the payload of Ready.
type Hello struct {
	Protocol int    `json:"protocol"`
	Prelude  string `json:"prelude"` // SHA-256 of the prelude's source, in hex
	Engine   string `json:"engine"`  // version of the engine
	Lock     Lock   `json:"lock"`
}

// Lock says what the worker is locked down with; inspect shows it.
type Lock struct {
	Landlock string `json:"landlock"` // "ABI 7", or why not
	Seccomp  string `json:"seccomp"`  // "on", or why not
	Memory   string `json:"memory"`   // "+1024 MiB", or why not
}

// LoadRequest is the payload of Load; see [AppendLoad].
type LoadRequest struct {
	ID        string        // "dyn-1": for texts
	File      string        // the name that positions carry
	Source    string        // the body of an async function; "": Files are a module
	MemoryMB  int           // heap of the VM
	VMTimeout time.Duration // inside the engine, per entry

	// What the worker may do next without being asked, if Apply is not 0 and all
	// that the plugin injects is required, without a configuration and in Live: the
	// Apply with that id, as run Run and a chain of its own.
	Apply uint64
	Run   uint32
	Live  string // what services are bound to, a JSON object

	// Entry is the one of Files that is an ES module exporting a plugin; "": Source is
	// the plugin. Files are texts by their paths below the plugin's folder.
	Entry string
	Files map[string]string
}

// AppendLoad appends the payload of Load to b: numbers, lengths, texts.
func AppendLoad(b []byte, l LoadRequest) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(l.MemoryMB))
	b = binary.LittleEndian.AppendUint64(b, uint64(l.VMTimeout))
	b = binary.LittleEndian.AppendUint64(b, l.Apply)
	b = binary.LittleEndian.AppendUint32(b, l.Run)
	texts := []string{l.ID, l.File, l.Live, l.Entry}
	if l.Entry != "" {
		for _, name := range slices.Sorted(maps.Keys(l.Files)) {
			if name != "" { // which ends them
				texts = append(texts, name, l.Files[name])
			}
		}
		texts = append(texts, "")
	}
	for _, text := range texts {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	return append(b, l.Source...)
}

// CutLoad reads the payload of Load.
func CutLoad(b []byte) (LoadRequest, error) {
	const head = 4 + 8 + 8 + 4
	if len(b) < head {
		return LoadRequest{}, errors.New("read load: no head")
	}
	l := LoadRequest{
		MemoryMB: int(binary.LittleEndian.Uint32(b)), VMTimeout: time.Duration(binary.LittleEndian.Uint64(b[4:])),
		Apply: binary.LittleEndian.Uint64(b[12:]), Run: binary.LittleEndian.Uint32(b[20:]),
	}
	r := texts{rest: b[head:]}
	l.ID, l.File, l.Live, l.Entry = r.next(), r.next(), r.next(), r.next()
	if l.Entry != "" {
		l.Files = map[string]string{}
		for name := r.next(); name != ""; name = r.next() {
			l.Files[name] = r.next()
		}
	}
	if r.short {
		return LoadRequest{}, errors.New("read load: the texts are shorter than it says")
	}
	l.Source = string(r.rest)
	return l, nil
}

// texts reads texts that have their lengths before them.
type texts struct {
	rest  []byte
	short bool
}

func (t *texts) next() string {
	if len(t.rest) < 4 || uint64(binary.LittleEndian.Uint32(t.rest)) > uint64(len(t.rest)-4) {
		t.short, t.rest = true, nil
		return ""
	}
	end := 4 + int(binary.LittleEndian.Uint32(t.rest))
	text := string(t.rest[4:end])
	t.rest = t.rest[end:]
	return text
}

// Loaded is the value of a successful Load.
type Loaded struct {
	Name       string   `json:"name"` // as the plugin says it, untouched; empty: none
	Inject     []Inject `json:"inject"`
	TypeScript bool     `json:"typescript"` // the source was TypeScript; types were erased
	// Config is what a module exports as its Config, as JSON text; "": nothing. It is
	// not checked.
	Config string `json:"config,omitempty"`
}

// Inject is one declared dependency.
type Inject struct {
	Name     string          `json:"name"`
	Optional bool            `json:"optional,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
}

// Fault is a failure as it crosses the wire.
type Fault struct {
	Name    string   `json:"name,omitempty"`    // the error's class name
	Message string   `json:"message"`           // untouched
	Code    string   `json:"code,omitempty"`    // the error's own code, or one of the Code constants
	Frames  []string `json:"frames,omitempty"`  // "at deep (dyn-1.js:4:30)", the author's positions, nearest first
	Excerpt string   `json:"excerpt,omitempty"` // of a syntax error: position, source line, caret
	Raw     bool     `json:"raw,omitempty"`     // what was thrown was no error: Message is its text
	Stack   string   `json:"stack,omitempty"`   // the engine's own stack; the worker turns it into Frames
}

// Codes of faults that the worker itself finds. A mount can throw an error with
// the same code, so the host believes a code only where [Stats] agrees.
const (
	CodeVMTimeout = "VM_TIMEOUT"   // interrupted: the entry's time inside the engine is used up
	CodeMemory    = "VM_MEMORY"    // the VM's memory is used up; it is spent
	CodePanic     = "VM_PANIC"     // the engine itself failed; the VM is spent
	CodeSyntax    = "SYNTAX"       // the source does not parse, as JavaScript or as TypeScript
	CodeDeadlock  = "DEADLOCK"     // chains wait for each other in a circle
	CodeBusy      = "VM_BUSY"      // the VM was in the middle of another synchronous call until the deadline
	CodeCancelled = "CANCELLED"    // the call was cancelled before it was entered
	CodeNoMount   = "NO_MOUNT"     // the VM is not there (any more)
	CodeStack     = "STACK"        // stack overflow that ended the entry
	CodeTooLarge  = "TOO_LARGE"    // the value does not fit a frame
	CodeTypeLimit = "NOT_A_PLUGIN" // the body returned no plugin
)

func (f *Fault) Error() string { return f.Message }

// Stats is the head of a Result's payload: what the call cost.
type Stats struct {
	Engine     time.Duration // time inside the engine for the frames of this call that the worker could tell apart
	Heap       int64         // bytes of the VM's heap after it
	Interrupts uint32        // entries of this VM that were interrupted, in a row, up to now
	Verdict    uint8         // one of the Verdict constants: what the worker itself saw
}

// What the worker itself saw of a call; unlike a Fault's code this cannot be forged by the code that runs.
const (
	VerdictNone    uint8 = iota
	VerdictTimeout       // an entry of this call was interrupted at its deadline
	VerdictMemory
	VerdictPanic
	VerdictSyntax
)

const statsSize = 8 + 8 + 4 + 1

// AppendStats appends the head and the value to b.
func AppendStats(b []byte, s Stats, value []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Engine))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Heap))
	b = binary.LittleEndian.AppendUint32(b, s.Interrupts)
	b = append(b, s.Verdict)
	return append(b, value...)
}

// CutStats splits a Result's payload.
func CutStats(b []byte) (Stats, []byte, error) {
	if len(b) < statsSize {
		return Stats{}, nil, errors.New("read result: no head")
	}
	return Stats{
		Engine:     time.Duration(binary.LittleEndian.Uint64(b)),
		Heap:       int64(binary.LittleEndian.Uint64(b[8:])),
		Interrupts: binary.LittleEndian.Uint32(b[16:]),
		Verdict:    b[20],
	}, b[statsSize:], nil
}

// AppendInvoke appends the payload of Invoke to b: the function's id and its
// arguments, a JSON text.
func AppendInvoke(b []byte, fn uint32, args []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, fn), args...)
}

// CutInvoke splits the payload of Invoke.
func CutInvoke(b []byte) (fn uint32, args []byte, err error) {
	if len(b) < 4 {
		return 0, nil, errors.New("read invoke: no head")
	}
	return binary.LittleEndian.Uint32(b), b[4:], nil
}

// Value splits a value's payload into a success's JSON text or a failure's
// fault. Anything else is an error: the frame is not what the protocol allows.
func Value(b []byte) (json.RawMessage, *Fault, error) {
	if len(b) == 0 {
		return nil, nil, errors.New("read value: empty")
	}
	switch b[0] {
	case '=':
		return json.RawMessage(b[1:]), nil, nil
	case '!':
		if len(b) > MaxFault {
			return nil, nil, fmt.Errorf("read fault: %d bytes, more than the limit of %d", len(b), MaxFault)
		}
		f := new(Fault)
		if err := json.Unmarshal(b[1:], f); err != nil {
			return nil, nil, fmt.Errorf("read fault: %w", err)
		}
		return nil, f, nil
	}
	return nil, nil, fmt.Errorf("read value: it begins with %q", b[0])
}

// Bounds on what a worker sends, beside [limits.Frame]. A worker keeps to them, so
// that the host takes a larger one for a worker that was taken over.
const (
	MaxAsk     = 16 << 20 // payload of HostSync, HostAsync and Send
	MaxFault   = 1 << 20  // text of a fault
	MaxConsole = 64 << 10 // payload of Console
)

// Ok is the payload of a success; an empty text is undefined.
func Ok(text []byte) []byte { return append([]byte{'='}, text...) }

// Failed is the payload of a failure.
func Failed(f *Fault) []byte {
	text, err := json.Marshal(f)
	if err != nil { // only strings: cannot happen
		text = []byte(`{"message":"unprintable failure"}`)
	}
	return append([]byte{'!'}, text...)
}
