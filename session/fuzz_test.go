package session_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// FuzzParseEvent: what is read is what the line says, and is written in a form
// that reads the same. The short cut for chunks agrees with the strict parser.
func FuzzParseEvent(f *testing.F) {
	for _, line := range sessiontest.Lines(newLog(f, sessiontest.Turn(1)...).Events(0)) {
		f.Add(line)
		f.Add(" " + strings.ReplaceAll(line, ",", " , "))
	}
	for _, line := range []string{
		`{"type":"user/message","seq":9,"time":1,"data":{},"surfaceOp":{"op":"replace","start":1,"end":2},"sourceEventSeqs":[1,2]}`,
		`{"type":"user/message","seq":9,"time":1,"data":{},"surfaceOp":{"op":"insert","before":1},"sourceEventSeqs":[]}`,
		`{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{}}}`,
		`{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"a":1},"b":{}}}`,
		`{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{}},"x":{"y":{}}}`,
		`{"type":"assistant/chunk","seq":01,"time":2,"data":{"turn":1,"step":1,"chunk":{}}}`,
		`{"seq":1,"seq":2}`, `[]`, `null`, ``, "{\"type\":\"\xff\"}", `{"type":"a","seq":-1,"time":0,"data":{}}`, `{"type":"a","seq":1e400,"time":0,"data":{}}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := session.ParseEvent(line)
		if err != nil {
			return
		}
		again, err := session.ParseEvent(e.Line())
		if err != nil {
			t.Fatalf("%q was written as %q: %v", line, e.Line(), err)
		}
		if again.Line() != e.Line() || again.Data() != e.Data() || again.Seq != e.Seq || again.Time != e.Time || again.Type != e.Type || again.Op() != e.Op() {
			t.Fatalf("%q came back as %q", e.Line(), again.Line())
		}
		if d := cmp.Diff(e.Sources(), again.Sources()); d != "" {
			t.Fatal(d)
		}
		v, err := lossless.Parse([]byte(e.Data()))
		if err != nil {
			if strings.Contains(err.Error(), "duplicate key") && e.Type == session.TypeChunk {
				return // inside of a chunk nobody looks
			}
			t.Fatalf("data %q: %v", e.Data(), err)
		}
		if whole, err := lossless.Parse([]byte(line)); err == nil {
			want, _ := whole.Get("data")
			if !lossless.Equal(want, v) {
				t.Fatalf("%q: data %q", line, e.Data())
			}
		}
		_, _ = e.Payload()
	})
}

// FuzzDecode: any file is a log, or an error; never both, never a panic. What is
// kept of a log reads as the same log.
func FuzzDecode(f *testing.F) {
	l := newLog(f, sessiontest.Turn(1)...)
	whole := l.Meta().Line() + "\n" + strings.Join(sessiontest.Lines(l.Events(0)), "\n") + "\n"
	f.Add(whole)
	f.Add(whole[:len(whole)-30])
	f.Add(strings.Replace(whole, `"turn":1`, `"turn":2`, 1))
	f.Add(l.Meta().Line() + "\n\n")
	f.Add(`{"type":"session","version":2,"id":"x"}` + "\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		l, kept, err := session.Decode(text, nil)
		if err != nil {
			return
		}
		again, keptAgain, err := session.Decode(text[:kept], nil)
		if err != nil || keptAgain != kept || again.Len() != l.Len() {
			t.Fatalf("kept %d, then %d: %v", kept, keptAgain, err)
		}
		if _, err := l.Repair(); err != nil {
			t.Fatalf("the repair: %v", err)
		}
	})
}
