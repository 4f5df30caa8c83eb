package casetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const fakeEnv = "DSH_CASETEST_FAKE"

// fakeProgram answers like a server with the tools b and a: "b" echoes its
// arguments, any other name is an error.
func fakeProgram(in io.Reader, out io.Writer) int {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var req struct {
			ID     *int
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(lines.Bytes(), &req) != nil {
			fmt.Fprintln(out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"refused"}}`)
		}
		if req.ID == nil {
			continue
		}
		result := `{}`
		switch {
		case req.Method == "tools/list":
			result = `{"tools":[{"name":"b"},{"name":"a"}]}`
		case req.Params.Name == "noise":
			fmt.Fprintln(out, "not protocol")
		case req.Params.Name == "refused":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no such thing"}}`+"\n", *req.ID)
			continue
		case req.Params.Name == "b":
			text, _ := json.Marshal(string(req.Params.Arguments))
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%s},{"type":"text","text":"end"}],"structuredContent":{"v":[{"n":1}]}}`, text)
		case req.Method == "tools/call":
			result = `{"content":[{"type":"text","text":"Error: unknown"}],"isError":true}`
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"result":%s}`+"\n", *req.ID, result)
	}
	if os.Getenv(fakeEnv) == "hang" {
		time.Sleep(time.Hour)
	}
	return 0
}

func TestSteps(t *testing.T) {
	t.Setenv(fakeEnv, "1")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, step, fault string }{
		{"answer", `{"call":"b","args":{"x":"@@FILL:3@@"},"has":["{\"x\":\"xxx\"}","\nend"],"lacks":["FILL"],"value":{"v.0.n":1}}`, ""},
		{"code", `{"call":"b","code":"return 1","has":["{\"code\":\"return 1\"}"]}`, ""},
		{"arguments_on_lines", "{\"call\":\"b\",\"args\":{\n\"x\":\n1.0},\"has\":[\"{\\\"x\\\":1.0}\"]}", ""},
		{"raw_arguments", `{"call":"b","args_json":"{\"x\": 1.0}","has":["{\"x\":1.0}"]}`, ""},
		{"no_json", `{"call":"b","args_json":"{nonsense","error":true,"has":["refused"]}`, ""},
		{"missing_text", `{"call":"b","has":["absent"]}`, `want "absent"`},
		{"unwanted_text", `{"call":"b","lacks":["end"]}`, `do not want "end"`},
		{"wrong_value", `{"call":"b","value":{"v.0.n":2}}`, "want v.0.n = 2, have 1"},
		{"no_value", `{"call":"b","value":{"v.1":2}}`, "want v.1 = 2"},
		{"too_long", `{"call":"b","max_chars":3}`, "at most 3 characters"},
		{"in_time", `{"call":"b","max_ms":20000}`, ""},
		{"unexpected_error", `{"call":"c"}`, "want isError false"},
		{"expected_error", `{"call":"c","error":true,"if_error_has":["unknown"]}`, ""},
		{"missing_error", `{"call":"b","error":true}`, "want isError true"},
		{"either", `{"call":"c","error":null}`, ""},
		{"wrong_error_text", `{"call":"c","error":null,"if_error_has":["other"]}`, `want "other" in an error`},
		{"protocol_error", `{"call":"refused","error":true,"has":["no such thing"]}`, ""},
		{"list", `{"list":true,"has":["a","b"],"only":true,"order":["b","a"]}`, ""},
		{"list_lacks", `{"list":true,"lacks":["a"]}`, "the list has a"},
		{"list_more", `{"list":true,"has":["a"],"only":true}`, "the list has more"},
		{"list_missing", `{"list":true,"has":["z"]}`, "the list has no z"},
		{"list_order", `{"list":true,"order":["a","b"]}`, "does not keep the order"},
		{"await_nothing", `{"await":"z"}`, `no call was started as "z"`},
	}
	client, err := Start(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s Step
			if err := json.Unmarshal([]byte(tt.step), &s); err != nil {
				t.Fatal(err)
			}
			faults, err := client.step(t.Context(), s, nil)
			got := strings.Join(faults, "\n")
			if err != nil {
				got += err.Error()
			}
			if (got == "") != (tt.fault == "") || !strings.Contains(got, tt.fault) {
				t.Errorf("faults %q, want %q in them", got, tt.fault)
			}
		})
	}
	if err := client.Close(closeWithin); err != nil {
		t.Error(err)
	}
}

// TestStartAwait: a started call is awaited by its tag, and noise on standard
// output fails the case at its end.
func TestStartAwait(t *testing.T) {
	t.Setenv(fakeEnv, "1")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client, err := Start(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	started := map[string]func(context.Context) (Answer, error){}
	for _, s := range []Step{
		{Call: "b", Start: "one"},
		{SleepMS: 1},
		{Call: "noise", Expectations: Expectations{Error: json.RawMessage("null")}},
		{Await: "one", Expectations: Expectations{Has: []string{"end"}}},
	} {
		if faults, err := client.step(t.Context(), s, started); err != nil || faults != nil {
			t.Fatal(faults, err)
		}
	}
	if err := client.Close(closeWithin); err == nil || !strings.Contains(err.Error(), "not protocol") {
		t.Errorf("close: %v, want the line that is no protocol", err)
	}
}

func TestLoad(t *testing.T) {
	tests := []struct{ name, text, fault string }{
		{"good", `[{"id":"a","steps":[{"call":"x","error":null}]}]`, ""},
		{"unknown_member", `[{"id":"a","steps":[{"call":"x","hass":[]}]}]`, "hass"},
		{"two_kinds", `[{"id":"a","steps":[{"call":"x","list":true}]}]`, "2 of them"},
		{"no_kind", `[{"id":"a","steps":[{"has":["x"]}]}]`, "0 of them"},
		{"start_without_call", `[{"id":"a","steps":[{"list":true,"start":"t"}]}]`, "start needs a call"},
		{"same_id", `[{"id":"a"},{"id":"a"}]`, "not unique"},
		{"rest", `[] []`, "text after the list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "cases.json")
			if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(name)
			if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("Load: %v, want %q", err, tt.fault)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	got := expand("a@@FILL:3@@b@@FILL:0@@c@@FILL:x@@")
	if diff := cmp.Diff("axxxbc@@FILL:x@@", got); diff != "" {
		t.Error(diff)
	}
}

// TestCloseInTime: a program that does not end with its input is killed and
// reported.
func TestCloseInTime(t *testing.T) {
	t.Setenv(fakeEnv, "hang")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client, err := Start(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "after it was asked to") {
		t.Errorf("close: %v, want an error that says when the program ended", err)
	}
	if _, err := client.Send("ping", json.RawMessage("{}")); err == nil {
		t.Error("Send to a program that has ended succeeded")
	}
}
