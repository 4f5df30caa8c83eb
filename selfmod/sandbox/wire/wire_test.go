package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

func TestFramesCrossUnchanged(t *testing.T) {
	frames := []wire.Frame{
		{Kind: wire.Load, ID: 1, Chain: 2, Mount: 3, Run: 4, Name: "n", Payload: []byte(`{"a":1}`)},
		{Kind: wire.Result, Flags: wire.FlagSpent, ID: 1 << 63, Payload: []byte{}},
		{Kind: wire.Console, Name: strings.Repeat("x", 256), Payload: bytes.Repeat([]byte("y"), 3<<20)},
	}
	var buf bytes.Buffer
	w := wire.NewWriter(&buf)
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	r := wire.NewReader(&buf)
	for i, want := range frames {
		got, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("frame %d:\n%s", i, diff)
		}
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestFramesAreBounded(t *testing.T) {
	w := wire.NewWriter(io.Discard)
	if err := w.Write(wire.Frame{Payload: make([]byte, limits.Frame)}); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("a payload over the limit: %v", err)
	}
	if err := w.Write(wire.Frame{Name: strings.Repeat("x", 257)}); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("a name over the limit: %v", err)
	}
	for name, head := range map[string][]byte{
		"size":      binary.LittleEndian.AppendUint32(nil, limits.Frame+1),
		"too_short": binary.LittleEndian.AppendUint32(nil, 3),
		"cut":       append(binary.LittleEndian.AppendUint32(nil, 1<<20), "few"...),
		"cut_head":  {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := wire.NewReader(bytes.NewReader(head)).Read(); err == nil || errors.Is(err, io.EOF) && name != "cut_head" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPayloads(t *testing.T) {
	stats := wire.Stats{Engine: time.Second, Heap: 5, Interrupts: 2, Verdict: wire.VerdictTimeout}
	got, value, err := wire.CutStats(wire.AppendStats(nil, stats, []byte("=1")))
	if err != nil || got != stats || string(value) != "=1" {
		t.Errorf("stats: %v, %q, %v", got, value, err)
	}
	fn, args, err := wire.CutInvoke(wire.AppendInvoke(nil, 7, []byte("{}")))
	if err != nil || fn != 7 || string(args) != "{}" {
		t.Errorf("invoke: %d, %q, %v", fn, args, err)
	}
	load := wire.LoadRequest{ID: "dyn-1", File: "f.js", Source: "return 1", MemoryMB: 64, VMTimeout: time.Second, Apply: 1 << 40, Run: 7, Live: "{}"}
	module := wire.LoadRequest{ID: "./a", File: "./a", MemoryMB: 64, Entry: "index.js", Files: map[string]string{"index.js": "import './b'", "b.js": ""}}
	if got, err := wire.CutLoad(wire.AppendLoad(nil, module)); err != nil || !reflect.DeepEqual(got, module) {
		t.Errorf("load of a module: %+v, %v", got, err)
	}
	payload := wire.AppendLoad(nil, load)
	if got, err := wire.CutLoad(payload); err != nil || !reflect.DeepEqual(got, load) {
		t.Errorf("load: %+v, %v", got, err)
	}
	for _, n := range []int{0, 23, 24, 28, 33, 35, 40, 46} {
		if got, err := wire.CutLoad(payload[:n]); err == nil {
			t.Errorf("%d bytes of a load were read: %+v", n, got)
		}
	}
	text, fault, err := wire.Value(wire.Ok([]byte(`{"a":1}`)))
	if err != nil || fault != nil || string(text) != `{"a":1}` {
		t.Errorf("success: %s, %v, %v", text, fault, err)
	}
	want := &wire.Fault{Name: "TypeError", Message: "m\u2028", Code: "C", Frames: []string{"at f"}}
	if _, fault, err = wire.Value(wire.Failed(want)); err != nil || cmp.Diff(want, fault) != "" {
		t.Errorf("failure: %v, %v", fault, err)
	}
	for _, bad := range []string{"", "x", "!", "!{"} {
		if _, _, err := wire.Value([]byte(bad)); err == nil {
			t.Errorf("value %q was read", bad)
		}
	}
}

// loads are values of a Load, as they are and as they should not be.
var loads = []string{
	`{"name":"p","inject":[]}`, `{"typescript":true,"name":"p","inject":[{"name":"tools"},{"name":"fs","optional":true}]}`,
	`{"name":"a\u0041\n","inject":[]}`, `{"name":"ü","inject":[{"name":"x","config":{"a":1}}]}`, ` {"name" : "p" , "inject" : [ ] } `,
	`{"name":"p","name":"q"}`, `{"Name":"p"}`, `{"inject":null}`, `{"inject":[{"name":"a"}],"inject":[{"name":"b"}]}`, `{"other":1}`,
	`{"name":1}`, `{"name":"p","typescript":1}`, `{"name":"\x01"}`, "{\"name\":\"\xff\"}", "{\"name\":\"\n\"}", `{"name":"p"`, `{"name":"p"}}`, ``, `null`, `[]`,
	`{"inject":[{"name":"a"},]}`, `{"inject":[1]}`, `{"inject":[{"optional":true}]}`, `{"name":"}`, `{"name":"}`,
}

// checkLoaded compares what is read with what package json reads.
func checkLoaded(t *testing.T, text string) {
	t.Helper()
	var want wire.Loaded
	wantErr := json.Unmarshal([]byte(text), &want)
	got, err := wire.ReadLoaded([]byte(text))
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%q: %v; package json: %v", text, err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%q gave %+v, want %+v", text, got, want)
	}
}

func TestReadLoaded(t *testing.T) {
	for _, text := range loads {
		checkLoaded(t, text)
	}
}

func FuzzReadLoaded(f *testing.F) {
	for _, text := range loads {
		f.Add(text)
	}
	f.Fuzz(checkLoaded)
}

// TestReadMembers: what has one known form is read here, all else by package json.
func TestReadMembers(t *testing.T) {
	type spec struct {
		S string          `json:"s"`
		B bool            `json:"b"`
		U uint32          `json:"u"`
		F float64         `json:"f"`
		R json.RawMessage `json:"r"`
	}
	at := func(v *spec, key string) any {
		return map[string]any{"s": &v.S, "b": &v.B, "u": &v.U, "f": &v.F, "r": &v.R}[key]
	}
	for _, text := range []string{
		`{"s":"x","b":true,"u":7,"f":20,"r":{"a":[1]}}`, `{"b":false,"u":0,"f":0}`, `{"f":1.5}`, `{"f":-1e3}`, `{"f":1e400}`, `{"u":-1}`, `{"u":01}`, `{"u":4294967296}`,
		`{"u":1.0}`, `{"b":1}`, `{"s":"a\"b"}`, `{"s":null}`, `{"z":1,"s":"x"}`, `{"s":"x","u":}`, `{"f":01}`, `{"u":+1}`,
	} {
		var got, want spec
		err, wantErr := wire.Read([]byte(text), &got, at), json.Unmarshal([]byte(text), &want)
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s gave %+v, %v; want %+v, %v", text, got, err, want, wantErr)
		}
	}
}

// FuzzReader: whatever comes, reading ends with an error or gives frames that
// are written again byte for byte.
func FuzzReader(f *testing.F) {
	var buf bytes.Buffer
	w := wire.NewWriter(&buf)
	hello, err := json.Marshal(wire.Hello{Protocol: wire.Protocol})
	if err != nil {
		f.Fatal(err)
	}
	for _, frame := range []wire.Frame{{Kind: wire.Ready, Payload: hello}, {Kind: wire.Result, ID: 9, Name: "x", Payload: []byte("=1")}} {
		if err := w.Write(frame); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(buf.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := wire.NewReader(bytes.NewReader(in))
		var out bytes.Buffer
		w := wire.NewWriter(&out)
		for {
			frame, err := r.Read()
			if err != nil {
				break
			}
			if err := w.Write(frame); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(in, out.Bytes()) {
			t.Errorf("read and written again: %x, from %x", out.Bytes(), in)
		}
	})
}
