package sandbox_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker"
)

// TestMain lets the test binary be a worker that was taken over: it speaks the
// protocol as far as it likes; or one that was not.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__worker" {
		os.Exit(worker.Main(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		os.Exit(fake(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// fakeWorker is a worker that was taken over. It answers as a real one would,
// except for what its lie says.
type fakeWorker struct {
	r   *wire.Reader
	w   *wire.Writer
	got map[uint64]string // answers of the host, by id
}

func fake(lie string) int {
	f := &fakeWorker{r: wire.NewReader(os.Stdin), w: wire.NewWriter(os.Stdout), got: map[uint64]string{}}
	if handshake, ok := handshakes[lie]; ok {
		handshake(f)
	} else {
		f.ready(wire.Protocol, prelude.Hash())
	}
	for {
		frame, err := f.r.Read()
		if err != nil {
			return 0
		}
		if code, end := f.answer(lie, frame); end {
			return code
		}
	}
}

func (f *fakeWorker) ready(protocol int, hash string) {
	hello, err := json.Marshal(wire.Hello{Protocol: protocol, Prelude: hash, Engine: "fake", Lock: wire.Lock{Landlock: "\x1b[31mFORGED\n## FORGED", Seccomp: strings.Repeat("x", 1<<20)}})
	if err != nil {
		panic(err)
	}
	f.send(wire.Frame{Kind: wire.Ready, Payload: hello})
}

func (f *fakeWorker) send(frame wire.Frame) {
	_ = f.w.Write(frame) // the host may have ended us
}

func (f *fakeWorker) result(to wire.Frame, value string) {
	f.send(wire.Frame{Kind: wire.Result, ID: to.ID, Chain: to.Chain, Mount: to.Mount, Run: to.Run, Payload: wire.AppendStats(nil, wire.Stats{}, []byte(value))})
}

func raw(b []byte) { _, _ = os.Stdout.Write(b) }

// head is a frame's length and kind with nothing behind it.
func head(n uint32, kind wire.Kind) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, n), byte(kind))
}

var handshakes = map[string]func(*fakeWorker){
	"wrong_protocol":   func(f *fakeWorker) { f.ready(wire.Protocol+1, prelude.Hash()) },
	"wrong_prelude":    func(f *fakeWorker) { f.ready(wire.Protocol, "\x1b[31mFORGED") },
	"not_ready":        func(f *fakeWorker) { f.send(wire.Frame{Kind: wire.Pong}) },
	"unreadable_hello": func(f *fakeWorker) { f.send(wire.Frame{Kind: wire.Ready, Payload: []byte("{")}) },
	"text":             func(*fakeWorker) { raw([]byte("hello, this is no frame\n")) },
	"exits_at_once":    func(*fakeWorker) { os.Exit(3) },
	"ends_its_output":  func(*fakeWorker) { _ = os.Stdout.Close() },
	"speaks_of_a_crash": func(*fakeWorker) {
		fmt.Fprintln(os.Stderr, "fatal error: \x1b[31mFORGED\u202e "+strings.Repeat("x", 1<<20))
		os.Exit(2)
	},
}

// answer acts on one frame of the host; end says that the worker exits.
func (f *fakeWorker) answer(lie string, frame wire.Frame) (code int, end bool) {
	switch frame.Kind {
	case wire.Load:
		if lie == "claims_ahead" {
			f.send(wire.Frame{Kind: wire.Result, Flags: wire.FlagAhead, ID: frame.ID, Chain: frame.Chain, Mount: frame.Mount,
				Payload: wire.AppendStats(nil, wire.Stats{}, []byte(loaded(lie)))})
			return 0, false
		}
		f.result(frame, loaded(lie))
	case wire.Apply:
		if verbs := forgeries[lie]; verbs != nil {
			f.forge(frame, verbs)
		}
		f.result(frame, "=")
	case wire.Unload:
		f.result(frame, "=")
	case wire.Ping:
		f.send(wire.Frame{Kind: wire.Pong, ID: frame.ID})
	case wire.Quit:
		if lie != "never_quits" {
			return 0, true
		}
	case wire.Reply, wire.Settle:
		f.got[frame.ID] = string(frame.Payload)
	case wire.Invoke:
		if forgeries[lie] != nil && frame.Name == "tool" {
			text, err := json.Marshal(f.got)
			if err != nil {
				panic(err)
			}
			f.result(frame, `={"value":`+string(text)+`,"content":[{"type":"text","text":"told"}]}`)
		} else if frame.Name == "good" {
			f.result(frame, `="good"`)
		} else if do, ok := lies()[lie]; ok {
			return do(f, frame)
		}
	}
	return 0, false
}

// lie is what a worker does when it is asked to enter a function; end says that
// it exits then.
type lie = func(f *fakeWorker, to wire.Frame) (code int, end bool)

// lies are all of them, by name.
func lies() map[string]lie {
	return map[string]lie{
		"never_quits":   silent,
		"silence":       silent,
		"stops_reading": func(*fakeWorker, wire.Frame) (int, bool) { time.Sleep(time.Minute); return 0, true },
		"exits": func(*fakeWorker, wire.Frame) (int, bool) {
			fmt.Fprintln(os.Stderr, "goroutine 1 [running]:\nfatal error: \x1b]0;FORGED\x07all asleep\u202e")
			return 2, true
		},
		"unknown_kind":        sends(func(to wire.Frame) wire.Frame { return wire.Frame{Kind: 99, Mount: to.Mount} }),
		"kind_of_the_host":    sends(func(to wire.Frame) wire.Frame { return wire.Frame{Kind: wire.Invoke, Mount: to.Mount} }),
		"ready_again":         sends(func(wire.Frame) wire.Frame { return wire.Frame{Kind: wire.Ready, Payload: []byte("{}")} }),
		"result_without_head": sends(func(to wire.Frame) wire.Frame { return wire.Frame{Kind: wire.Result, ID: to.ID, Mount: to.Mount} }),
		"result_of_no_kind":   value("?"),
		"result_empty":        value(""),
		"fault_unreadable":    value("!{"),
		"fault_huge":          value(`!{"message":"` + strings.Repeat("x", wire.MaxFault) + `"}`),
		"ask_huge": sends(func(to wire.Frame) wire.Frame {
			return ask(wire.HostSync, to, "tool", strings.Repeat("x", wire.MaxAsk+1))
		}),
		"console_huge": sends(func(to wire.Frame) wire.Frame {
			return ask(wire.Console, to, "log", strings.Repeat("x", wire.MaxConsole+1))
		}),
		"late_unreadable":     sends(func(to wire.Frame) wire.Frame { return ask(wire.Late, to, "", "[") }),
		"late_huge":           sends(func(to wire.Frame) wire.Frame { return ask(wire.Late, to, "", strings.Repeat("x", wire.MaxFault+1)) }),
		"frame_huge":          bytesOf(head(limits.Frame+1, wire.Result)),
		"frame_of_4_gigabyte": bytesOf(head(1<<32-1, wire.Result)),
		"frame_short":         bytesOf(head(3, wire.Result)),
		"frame_unfinished":    bytesOf(head(60<<20, wire.Result)),
		"name_too_long":       bytesOf(append(append(head(28+1000, wire.Console), make([]byte, 25)...), append([]byte{0xe8, 3}, bytes.Repeat([]byte("x"), 1000)...)...)),
		"noise":               bytesOf(bytes.Repeat([]byte{0xff, 0x00, 0x41}, 100)),
		"asks_without_end": func(f *fakeWorker, to wire.Frame) (int, bool) {
			for i := range 10_000 {
				a := ask(wire.HostAsync, to, "hang", "{}")
				a.ID = uint64(i)
				f.send(a)
			}
			return 0, false
		},
		"waits_for_the_host": func(f *fakeWorker, to wire.Frame) (int, bool) {
			a := ask(wire.HostSync, to, "hang", "{}")
			a.ID = 55
			f.send(a)
			for f.got[55] == "" {
				frame, err := f.r.Read()
				if err != nil {
					return 1, true
				}
				f.answer("", frame)
			}
			f.result(to, f.got[55])
			return 0, false
		},
		"stuck": sends(func(to wire.Frame) wire.Frame {
			return wire.Frame{Kind: wire.Stuck, ID: to.ID, Mount: to.Mount, Name: "\x1b[31mFORGED"}
		}),
		"spent_without_fault": sends(func(to wire.Frame) wire.Frame {
			return wire.Frame{Kind: wire.Result, Flags: wire.FlagSpent, ID: to.ID, Mount: to.Mount, Payload: wire.AppendStats(nil, wire.Stats{}, []byte("="))}
		}),
		"late_and_spent": sends(func(to wire.Frame) wire.Frame {
			return wire.Frame{Kind: wire.Late, Flags: wire.FlagSpent, Mount: to.Mount, Payload: []byte(`{"message":"spent","code":"NONE"}`)}
		}),
		// What does no harm: it is dropped, and the call is answered after it.
		"wrong_ids": func(f *fakeWorker, to wire.Frame) (int, bool) {
			for _, id := range []uint64{0, to.ID + 1000, 1<<64 - 1} {
				f.send(wire.Frame{Kind: wire.Result, ID: id, Mount: to.Mount, Payload: []byte("?")})
				f.send(wire.Frame{Kind: wire.Pong, ID: id})
				f.send(wire.Frame{Kind: wire.Stuck, ID: id, Mount: 999})
				f.send(wire.Frame{Kind: wire.Send, Name: wire.VerbPhase, ID: id, Mount: to.Mount, Payload: []byte("FORGED")})
			}
			f.result(to, `="harmless"`)
			f.result(to, `="twice"`)
			return 0, false
		},
		"unknown_mounts": func(f *fakeWorker, to wire.Frame) (int, bool) {
			for _, k := range []wire.Kind{wire.HostSync, wire.HostAsync, wire.Send, wire.Console, wire.Late} {
				f.send(wire.Frame{Kind: k, Mount: 4242, Name: "tool", Payload: bytes.Repeat([]byte("x"), 1<<20)})
				f.send(wire.Frame{Kind: k, Mount: 1<<32 - 1, Name: "on"})
			}
			f.result(to, `="harmless"`)
			return 0, false
		},
		"unknown_chain": func(f *fakeWorker, to wire.Frame) (int, bool) {
			a := ask(wire.HostSync, to, "echo", `"asked"`)
			a.ID, a.Chain, a.Run = 77, 1<<63, 99
			f.send(a)
			for f.got[77] == "" {
				frame, err := f.r.Read()
				if err != nil {
					return 1, true
				}
				f.answer("", frame)
			}
			f.result(to, f.got[77])
			return 0, false
		},
	}
}

func silent(*fakeWorker, wire.Frame) (int, bool) { return 0, false }

func sends(frame func(to wire.Frame) wire.Frame) func(*fakeWorker, wire.Frame) (int, bool) {
	return func(f *fakeWorker, to wire.Frame) (int, bool) {
		f.send(frame(to))
		return 0, false
	}
}

func value(text string) func(*fakeWorker, wire.Frame) (int, bool) {
	return func(f *fakeWorker, to wire.Frame) (int, bool) {
		f.result(to, text)
		return 0, false
	}
}

func bytesOf(b []byte) func(*fakeWorker, wire.Frame) (int, bool) {
	return func(*fakeWorker, wire.Frame) (int, bool) {
		raw(b)
		return 0, false
	}
}

func ask(kind wire.Kind, to wire.Frame, verb, payload string) wire.Frame {
	return wire.Frame{Kind: kind, Mount: to.Mount, Run: to.Run, Chain: to.Chain, Name: verb, Payload: []byte(payload)}
}
