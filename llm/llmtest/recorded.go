package llmtest

import (
	"bufio"
	"embed"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

//go:embed testdata
var own embed.FS

// Recording is one recorded answer.
type Recording struct {
	File   string `json:"file"`
	Wire   string `json:"wire"` // oai, oai-ns, ant, ant-ns: the API, -ns for an answer that is no stream
	Status int    `json:"status"`
	Expect *Expect
	Body   []byte `json:"-"`
}

// Expect is what a client should read in a recording.
type Expect struct {
	Text         string
	Reasoning    string
	Refusal      string
	Tools        []struct{ ID, Name, Args string }
	Finish       string
	Usage        map[string]any
	Error        json.RawMessage
	SignatureLen int `json:"signature_len"`
	Redacted     int
	Starts       int
}

// Failed reports that the recording has an error in it.
func (e *Expect) Failed() bool { return len(e.Error) > 0 && string(e.Error) != "null" }

// ErrorAnswer is one recorded refusal.
type ErrorAnswer struct {
	Name    string
	Status  int
	Headers map[string]string
	Body    string
}

// Recorded returns the recordings of the wires.
func Recorded(t testing.TB, wires ...string) []Recording {
	t.Helper()
	dir := source(t)
	var out []Recording
	lines(t, dir, "expected.jsonl", func(line []byte) {
		var r Recording
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("expected.jsonl: %v", err)
		}
		for _, w := range wires {
			if r.Wire == w {
				body, err := fs.ReadFile(dir, r.File)
				if err != nil {
					t.Fatal(err)
				}
				r.Body = body
				out = append(out, r)
			}
		}
	})
	if len(out) == 0 {
		t.Fatalf("no recording of %v", wires)
	}
	return out
}

// Errors returns the recorded refusals.
func Errors(t testing.TB) []ErrorAnswer {
	t.Helper()
	var out []ErrorAnswer
	lines(t, source(t), "errors/errors.jsonl", func(line []byte) {
		var e ErrorAnswer
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("errors.jsonl: %v", err)
		}
		out = append(out, e)
	})
	return out
}

// source is the folder of all recordings beside the checkout, else the selection.
func source(t testing.TB) fs.FS {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		all := filepath.Join(dir, "shared", "data", "llm")
		if _, err := os.Stat(filepath.Join(all, "expected.jsonl")); err == nil {
			return os.DirFS(all)
		}
	}
	t.Log("notice: the full set of recordings is not beside this checkout; its selection in testdata is used")
	some, err := fs.Sub(own, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	return some
}

func lines(t testing.TB, dir fs.FS, name string, each func([]byte)) {
	t.Helper()
	f, err := dir.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		each(s.Bytes())
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
}
