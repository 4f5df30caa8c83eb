package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dsh-go/dsh/limits"
)

// nested is a request whose params are nested so that the message has depth levels.
func nested(id string, depth int) string {
	n := depth - 1
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping","params":` +
		strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
}

func TestDecode(t *testing.T) {
	tests := []struct {
		name, line string
		code       int // 0: a message
		id         string
		has        string
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0, "", ""},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0, "", ""},
		{"spaces", ` {"jsonrpc":"2.0","id":"a","method":"ping"} `, 0, "", ""},
		{"depth_allowed", nested("1", limits.MCPDepth), 0, "", ""},
		{"depth_refused", nested("7", limits.MCPDepth+1), codeInvalid, "7", "deeper than 1000"},
		{"depth_huge", nested(`"deep"`, 200_000), codeInvalid, `"deep"`, "deeper than 1000"},
		{"depth_unclosed", strings.Repeat("[", 200_000), codeInvalid, "", "deeper than 1000"},
		{"not_json", `hello`, codeParse, "", "not JSON"},
		{"half", `{"jsonrpc":"2.0","id":1,`, codeParse, "", "at byte"},
		{"two_values", `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, codeParse, "", "not JSON"},
		{"not_utf8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", codeParse, "", "UTF-8"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, codeInvalid, "", "batches"},
		{"number", `42`, codeInvalid, "", "object"},
		{"no_version", `{"id":3,"method":"ping"}`, codeInvalid, "3", "JSON-RPC 2.0"},
		{"no_method", `{"jsonrpc":"2.0"}`, codeInvalid, "", "JSON-RPC 2.0"},
		{"id_object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, codeInvalid, "", ""},
		{"id_bool", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, codeInvalid, "true", "id must be"},
		{"id_fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, codeInvalid, "1.5", "id must be"},
		{"id_big", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, codeInvalid, "9007199254740993", "id must be"},
		{"id_largest", `{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}`, 0, "", ""},
		{"id_null", `{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}`, 0, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			msg, f := decode([]byte(tt.line), false)
			if tt.code == 0 {
				if f != nil || msg == nil {
					t.Fatalf("refused: %+v", f)
				}
				return
			}
			if f == nil {
				t.Fatalf("accepted as %T", msg)
			}
			if f.code != tt.code || string(f.id) != tt.id || !strings.Contains(f.message, tt.has) {
				t.Errorf("got code %d, id %s, %q; want code %d, id %s, %q in it", f.code, f.id, f.message, tt.code, tt.id, tt.has)
			}
		})
	}
}

func TestScan(t *testing.T) {
	tests := []struct {
		name, text string
		depth      int
		id         string
	}{
		{"empty", ``, 0, ""},
		{"plain", `{"id":5}`, 1, "5"},
		{"after_params", `{"params":{"id":1,"x":["id",{"id":2}]},"id":"z"}`, 4, `"z"`},
		{"inner_only", `{"params":{"id":1}}`, 2, ""},
		{"brackets_in_string", `{"a":"[[[{{{\"[","id":3}`, 1, "3"},
		{"id_as_value", `{"x":"id","y":4}`, 1, ""},
		{"escaped_quote", `{"id":"a\"b"}`, 1, `"a\"b"`},
		{"cut_number", `{"id":12`, 1, ""},
		{"cut_string", `{"id":"ab`, 1, ""},
		{"unbalanced", `]]]{"id":1}`, 0, ""},
		{"deep_first", `{"params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `,"id":8}`, 5001, "8"},
		{"nonsense_id", `{"id":nonsense}`, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := scan([]byte(tt.text))
			if h.depth != tt.depth || string(h.id) != tt.id {
				t.Errorf("depth %d, id %s; want %d, %s", h.depth, h.id, tt.depth, tt.id)
			}
		})
	}
}

func TestFrameReader(t *testing.T) {
	tests := []struct {
		name  string
		input string
		want  []string // a + before a line that was too long
	}{
		{"lines", "a\nb\r\n\n  \nc", []string{"a", "b", "c"}},
		{"exact", "1234567890\n123\n", []string{"1234567890", "123"}},
		{"exact_crlf", "123456789\r\n", []string{"123456789"}},
		{"long", "12345678901\nnext\n", []string{"+12345678901", "next"}},
		{"very_long", strings.Repeat("x", 300_000) + "\nnext\n", []string{"+" + strings.Repeat("x", headBytes), "next"}},
		{"long_at_end", "ok\n" + strings.Repeat("y", 100_000), []string{"ok", "+" + strings.Repeat("y", headBytes)}},
		{"nothing", "", nil},
		{"blank", "\n\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newFrameReader(strings.NewReader(tt.input), 10)
			var got []string
			for {
				line, long, err := r.next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					break
				}
				mark := ""
				if long {
					mark = "+"
				}
				got = append(got, mark+string(line))
			}
			if len(got) != len(tt.want) {
				t.Fatalf("%d lines, want %d", len(got), len(tt.want))
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("line %d: %.60q, want %.60q", i, got[i], tt.want[i])
				}
			}
		})
	}
}

// FuzzFrames: whatever comes before it, a good frame on a line of its own is
// read; what is decoded is a message or a fault, and a fault's id is JSON.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	f.Add([]byte("{\"id\":\"\\ud800\",\n[[[["))
	f.Add([]byte(strings.Repeat("[", 2000)))
	f.Add([]byte(`{"id":1e400,"jsonrpc":"2.0","method":"x"}`))
	f.Add([]byte("\xef\xbb\xbf{}\r\n\x00"))
	const good = `{"jsonrpc":"2.0","id":"good","method":"ping"}`
	f.Fuzz(func(t *testing.T, noise []byte) {
		r := newFrameReader(io.MultiReader(bytes.NewReader(noise), strings.NewReader("\n"+good+"\n")), 256)
		var last jsonrpc.Message
		for {
			line, long, err := r.next()
			if err != nil {
				break
			}
			if len(line) > 256 && !long {
				t.Fatalf("a line of %d bytes passed", len(line))
			}
			msg, fault := decode(line, long)
			if (msg == nil) == (fault == nil) {
				t.Fatalf("message %v and fault %v", msg, fault)
			}
			if fault != nil && fault.id != nil && !json.Valid(fault.id) {
				t.Fatalf("the fault's id is no JSON: %q", fault.id)
			}
			if fault == nil && scan(line).depth > limits.MCPDepth {
				t.Fatal("a frame beyond the depth passed")
			}
			last = msg
		}
		req, ok := last.(*jsonrpc.Request)
		if !ok || req.ID.Raw() != "good" {
			t.Fatalf("the good frame was lost: %v", last)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello","n":[1,2,3]}}}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, f := decode(line, false); f != nil {
			b.Fatal(f.message)
		}
	}
}
