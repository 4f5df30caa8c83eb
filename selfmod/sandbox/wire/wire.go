// Package wire is the protocol between the host and a worker process: the
// kinds of frames, what each carries, and the one reader and the one writer.
//
// A frame is a fixed head and a payload that is never re-encoded on its way:
//
//	u32 length of what follows | u8 kind | u8 flags | u64 id | u64 chain | u64 call |
//	u32 mount | u32 run | u16 length of name | name | payload
//
// all little endian. The payload of a value is the text that the prelude wrote:
// '=' and a JSON document for a success, '!' and a Fault for a failure.
//
// Ids are chosen by the side that asks and are unique for the life of a worker.
// A chain is the thread of one outermost call: what is asked for on behalf of a
// call carries the call's chain, so that a virtual machine that waits in a
// synchronous call can tell its own chain from others.
//
// The host trusts nothing that a worker sends: [Reader] bounds the size, and the
// host checks kind, mount, run and name of every frame before it acts on it.
// A Reader is for one goroutine; a Writer is safe for many and writes each frame
// with one call.
package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dsh-go/dsh/limits"
)

// Protocol is the version that both sides must have; a handshake compares it.
const Protocol = 4

// Kind says what a frame is.
type Kind uint8

// From the host to the worker.
const (
	// Load asks for a VM for Mount: payload is a LoadRequest, see [AppendLoad]. Answered by Result,
	// with FlagAhead if its Apply follows by itself.
	Load Kind = 1 + iota
	// Apply runs the plugin's apply as run Run: payload is the bindings, a JSON
	// object from service name to binding, and from "", which no service is called, to
	// the plugin's configuration if it has one. Answered by Result.
	Apply
	// Invoke enters a function of the mount: Name is its kind ("tool", "listener", …),
	// payload as [AppendInvoke] makes it: the function's id and its arguments. Answered by Result.
	Invoke
	// Settle answers HostAsync with the same ID.
	Settle
	// Reply answers HostSync with the same ID.
	Reply
	// Cancel ends the call ID: its signal fires, VMs of its chain are interrupted
	// while they run it. The call is still answered if it ever settles.
	Cancel
	// Bind changes what the optional service Name is bound to for run Run.
	Bind
	// Retire ends run Run: its façade refuses from then on, its handles are freed.
	Retire
	// Unload closes the VM of Mount. Answered by Result as soon as none of its
	// code can run any more; its memory is given back right after.
	Unload
	// Quit ends the worker.
	Quit
	// Ping asks for a Pong with the same ID, at once and whatever the VMs do: the
	// host asks when a call is overdue, to tell a busy worker from a stopped one.
	Ping
)

// From the worker to the host.
const (
	// Ready is the first frame of a worker: payload is a [Hello].
	Ready Kind = 64 + iota
	// Result answers Load, Apply, Invoke and Unload: payload is a [Stats] head and the value.
	Result
	// HostSync asks the host while the VM waits. Name is the verb. Answered by Reply.
	HostSync
	// HostAsync asks the host; the VM goes on. Answered by Settle.
	HostAsync
	// Send tells the host something one way: Name is the verb (progress, defer,
	// conclude, …). [VerbPhase] and [VerbHeap] are the worker's own.
	Send
	// Console is one line that a mount printed: Name is the level.
	Console
	// Late is an error of Mount that no call carries: an unhandled rejection or a
	// failing continuation. Payload is a Fault. FlagHandled withdraws it: it was handled later.
	Late
	// Stuck says that Mount is past its limit in something that the engine cannot
	// interrupt: ID is the entry's call, Name what the entry is.
	Stuck
	// Pong answers Ping.
	Pong
)

// Flags of a frame.
const (
	// FlagSpent on a Result or Late: the VM is no longer usable; the value's fault says why.
	FlagSpent = 1 << iota
	// FlagHandled on Late: see there.
	FlagHandled
	// FlagLater on Invoke: it is on behalf of a HostAsync, so no engine of its chain
	// waits for it. It is entered when its VM is free, never inside a wait of one.
	FlagLater
	// FlagAhead on the Result of a Load that allowed it: the worker goes on with the
	// Apply that the LoadRequest describes, and its Result follows.
	FlagAhead
)

// VerbPhase on Send: the call ID is in the phase that Payload names. The worker
// says so only where it matters: before a failure, and of a call that goes on.
const VerbPhase = "phase"

// VerbHeap on Send: the mount's heap has grown to as many bytes as Payload says in
// decimal digits, while something runs in it. What is left of the growth when the
// entry has ended is in its [Stats].
const VerbHeap = "heap"

// Frame is one message. Name and Payload of a read frame belong to the caller.
type Frame struct {
	Kind    Kind
	Flags   uint8
	ID      uint64
	Chain   uint64
	Call    uint64 // of HostSync, HostAsync and Send: the call that asks; 0: what one that has ended left behind
	Mount   uint32
	Run     uint32
	Name    string
	Payload []byte
}

const headSize = 1 + 1 + 8 + 8 + 8 + 4 + 4 + 2

// ErrTooLarge is the error of a frame over [limits.Frame].
var ErrTooLarge = errors.New("frame is too large")

// maxName bounds a frame's name: verbs and kinds are short.
const maxName = 256

// Writer writes frames.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewWriter returns a Writer over w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write sends one frame. A frame over the limit is refused with [ErrTooLarge]
// and nothing is written; any other error means that the connection is gone.
func (w *Writer) Write(f Frame) error {
	n := headSize + len(f.Name) + len(f.Payload)
	if n > limits.Frame {
		return fmt.Errorf("write %d bytes (the limit is %d): %w", n, limits.Frame, ErrTooLarge)
	}
	if len(f.Name) > maxName {
		return fmt.Errorf("write a name of %d bytes: %w", len(f.Name), ErrTooLarge)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := binary.LittleEndian.AppendUint32(w.buf[:0], uint32(n))
	b = append(b, byte(f.Kind), f.Flags)
	b = binary.LittleEndian.AppendUint64(b, f.ID)
	b = binary.LittleEndian.AppendUint64(b, f.Chain)
	b = binary.LittleEndian.AppendUint64(b, f.Call)
	b = binary.LittleEndian.AppendUint32(b, f.Mount)
	b = binary.LittleEndian.AppendUint32(b, f.Run)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.Name)))
	b = append(b, f.Name...)
	b = append(b, f.Payload...)
	if cap(b) <= 1<<20 { // keep the buffer, unless one large frame grew it
		w.buf = b
	} else {
		w.buf = nil
	}
	if _, err := w.w.Write(b); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// Reader reads frames.
type Reader struct{ r *bufio.Reader }

// NewReader returns a Reader over r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 64<<10)} }

// Read returns the next frame. At the end of the stream the error is [io.EOF];
// any error means that nothing more can be read.
func (r *Reader) Read() (Frame, error) {
	var size [4]byte
	if _, err := io.ReadFull(r.r, size[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return Frame{}, io.EOF
		}
		return Frame{}, fmt.Errorf("read frame: %w", err)
	}
	n := int(binary.LittleEndian.Uint32(size[:]))
	if n > limits.Frame {
		return Frame{}, fmt.Errorf("read %d bytes (the limit is %d): %w", n, limits.Frame, ErrTooLarge)
	}
	if n < headSize {
		return Frame{}, fmt.Errorf("read frame: %d bytes are no frame", n)
	}
	b, err := r.body(n)
	if err != nil {
		return Frame{}, fmt.Errorf("read frame: %w", err)
	}
	f := Frame{
		Kind:  Kind(b[0]),
		Flags: b[1],
		ID:    binary.LittleEndian.Uint64(b[2:]),
		Chain: binary.LittleEndian.Uint64(b[10:]),
		Call:  binary.LittleEndian.Uint64(b[18:]),
		Mount: binary.LittleEndian.Uint32(b[26:]),
		Run:   binary.LittleEndian.Uint32(b[30:]),
	}
	name := int(binary.LittleEndian.Uint16(b[34:]))
	if name > maxName || headSize+name > n {
		return Frame{}, fmt.Errorf("read frame: a name of %d bytes does not fit", name)
	}
	f.Name = string(b[headSize : headSize+name])
	f.Payload = b[headSize+name:]
	return f, nil
}

// Buffered is how many bytes of further frames have been read already.
func (r *Reader) Buffered() int { return r.r.Buffered() }

// body reads n bytes. A large announced size is allocated only as the bytes
// come, so that a lying head costs no memory.
func (r *Reader) body(n int) ([]byte, error) {
	const step = 1 << 20
	b := make([]byte, 0, min(n, step))
	for len(b) < n {
		chunk := min(n-len(b), step)
		at := len(b)
		if cap(b) < at+chunk {
			b = append(make([]byte, 0, min(n, 2*(at+chunk))), b...)
		}
		b = b[:at+chunk]
		if _, err := io.ReadFull(r.r, b[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return b, nil
}
