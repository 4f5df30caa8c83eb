package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/tool"
)

func TestListTools(t *testing.T) {
	yes := true
	zeta := echoTool()
	zeta.Name, zeta.Title, zeta.Annotations = "zeta", "Last of all", &tool.Annotations{ReadOnly: &yes}
	alpha := textTool()
	alpha.Name = "Alpha_1"
	f := newFixture(t, Config{Version: "v9"}, zeta, alpha, failTool())
	session := f.client(nil)

	if got := session.InitializeResult(); got != nil {
		if got.ServerInfo.Name != "dsh" || got.ServerInfo.Version != "v9" || !strings.Contains(got.Instructions, "cordis_mount") {
			t.Errorf("handshake %+v", got.ServerInfo)
		}
		//nolint:staticcheck // logging is deprecated, which is one more reason not to advertise it
		if got.Capabilities.Tools == nil || !got.Capabilities.Tools.ListChanged || got.Capabilities.Logging != nil {
			t.Errorf("capabilities %+v", got.Capabilities)
		}
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range list.Tools {
		names = append(names, x.Name)
	}
	if diff := cmp.Diff([]string{"Alpha_1", "fail", "zeta"}, names); diff != "" {
		t.Fatal(diff)
	}
	if list.Tools[0].OutputSchema != nil || list.Tools[0].Title != "" {
		t.Errorf("a tool with a string output has output schema %v and title %q", list.Tools[0].OutputSchema, list.Tools[0].Title)
	}
	last := list.Tools[2]
	if last.OutputSchema == nil || last.Title != "Last of all" || last.Annotations == nil || !last.Annotations.ReadOnlyHint {
		t.Errorf("zeta: %+v", last)
	}
}

// TestSchemaBytes: a schema travels as the registry has it, byte for byte.
func TestSchemaBytes(t *testing.T) {
	d := echoTool()
	d.Parameters = must(schema.Parameters(parse(
		`{"type":"object","properties":{"z<&>":{"type":"string","description":"é   <b>"},"a":{"type":"integer","default":10.0}},"required":["z<&>"]}`)))
	f := newFixture(t, Config{}, d)
	r := f.raw()
	r.write(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got, want := r.read(), `"inputSchema":`+string(d.Parameters.JSON()); !strings.Contains(got, want) {
		t.Errorf("list %s\nlacks %s", got, want)
	}
}

func TestCallResults(t *testing.T) {
	image := `{"type":"image","data":"aGk=","mimeType":"image/png","odd":1.0}`
	card := `{"type":"chart","points":[1,2]}`
	blocks := textTool()
	blocks.Name = "blocks"
	blocks.Output.Render = func(context.Context, lossless.Text, lossless.Text) ([]tool.Block, error) {
		return []tool.Block{
			tool.TextBlock("first"),
			{Type: "image", Raw: lossless.Text(image)},
			{Type: "chart", Raw: lossless.Text(card)},
			{Type: "image", Raw: lossless.Text(`{"type":"image"}`)},
		}, nil
	}
	f := newFixture(t, Config{}, echoTool(), textTool(), failTool(), blocks)
	r := f.raw()
	tests := []struct{ name, tool, args, want string }{
		{"object", "echo", `{"text":"a","n":1.0}`, `{"content":[{"type":"text","text":"value {\"text\":\"a\",\"n\":1.0}"}],"structuredContent":{"text":"a","n":1.0}}`},
		{"string", "say", `{}`, `{"content":[{"type":"text","text":"value \"\u003chi\u003e\""}]}`},
		{"null_arguments", "echo", `null`, `{"content":[{"type":"text","text":"value {}"}],"structuredContent":{}}`},
		{"blocks", "blocks", `{}`, `{"content":[{"type":"text","text":"first"},` + image +
			`,{"type":"text","text":"{\"type\":\"chart\",\"points\":[1,2]}"},{"type":"text","text":"{\"type\":\"image\"}"}]}`},
		{"failure", "fail", `{}`, `{"content":[{"type":"text","text":"Error: nothing works"}],"isError":true}`},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r.write(callRaw(i+1, tt.tool, tt.args))
			if diff := cmp.Diff(tt.want, member(t, r.read(), "result")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCallErrors: what goes wrong with a call is a result that the model reads.
func TestCallErrors(t *testing.T) {
	f := newFixture(t, Config{}, echoTool())
	session := f.client(nil)
	tests := []struct {
		name, tool string
		args       any
		has        string
	}{
		{"unknown", "nope", map[string]any{}, `unknown tool "nope"`},
		{"empty_name", "", map[string]any{}, "unknown tool"},
		{"wrong_type", "echo", map[string]any{"text": 1}, "invalid arguments"},
		{"not_an_object", "echo", []int{1}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tt.tool, Arguments: tt.args})
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, res); !res.IsError || !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, tt.has) {
				t.Errorf("isError %t, %q; want an error with %q", res.IsError, got, tt.has)
			}
		})
	}
}

// TestListChanged: a burst of changes is one notification, and what it tells of
// can be called when it arrives.
func TestListChanged(t *testing.T) {
	f := newFixture(t, Config{}, echoTool())
	told := make(chan struct{}, 100)
	session := f.client(&sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} },
	})
	var tools []*tool.Definition
	for i := range 20 {
		d := echoTool()
		d.Name = fmt.Sprintf("more_%d", i)
		tools = append(tools, d)
	}
	f.addTools("more", tools...)
	<-told
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "more_19", Arguments: map[string]any{}})
	if err != nil || res.IsError {
		t.Fatalf("call after the notification: %v, %+v", err, res)
	}
	select {
	case <-told:
		t.Error("a second notification for one burst")
	case <-time.After(100 * time.Millisecond):
	}
}

// TestListChangedOlderClient: a client of an older protocol version is told on
// the connection itself, not before it has shaken hands.
func TestListChangedOlderClient(t *testing.T) {
	f := newFixture(t, Config{}, echoTool())
	r := f.raw()
	more := echoTool()
	more.Name = "more"
	fiber := f.addTools("more", more)
	if got := r.read(); !strings.Contains(got, `"method":"notifications/tools/list_changed"`) {
		t.Errorf("after a tool came: %s", got)
	}
	if _, err := fiber.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.read(); !strings.Contains(got, `"method":"notifications/tools/list_changed"`) {
		t.Errorf("after a tool went: %s", got)
	}
}

func TestProgressNotifications(t *testing.T) {
	next := make(chan struct{})
	report := define("report", `{}`, func(_ context.Context, e *tool.Exec) (string, error) {
		e.Progress(tool.Progress{Text: "half", Done: number(1), Total: number(2)})
		<-next
		e.Progress(tool.Progress{Text: "all", Done: number(2), Total: number(2)})
		return "1", nil
	})
	f := newFixture(t, Config{}, report)
	r := f.raw()
	r.write(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":"p1"}}}`)
	want := `{"progressToken":"p1","message":"half","progress":1,"total":2}`
	if diff := cmp.Diff(want, member(t, r.read(), "params")); diff != "" {
		t.Error(diff)
	}
	close(next)
	want = `{"progressToken":"p1","message":"all","progress":2,"total":2}`
	if diff := cmp.Diff(want, member(t, r.read(), "params")); diff != "" {
		t.Error(diff)
	}
	if got := r.read(); !strings.Contains(got, `"id":1`) {
		t.Errorf("after the progress: %s, want the result", got)
	}
	// Without a token nothing is told.
	r.write(callRaw(2, "report", `{}`))
	if got := r.read(); !strings.Contains(got, `"id":2`) {
		t.Errorf("without a token: %s, want the result alone", got)
	}
}

// TestCancel: the client's cancellation ends the call's context, other calls run on.
func TestCancel(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	f := newFixture(t, Config{}, hangTool(entered, left), echoTool())
	session := f.client(nil)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "hang", Arguments: map[string]any{}})
		result <- err
	}()
	<-entered
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{}})
	if err != nil || res.IsError {
		t.Fatalf("a call beside one that hangs: %v, %+v", err, res)
	}
	cancel()
	<-left
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call: %v", err)
	}
}

// TestHidden: a tool with a schema that no client could read is not listed, can
// be called, and the reason is told.
func TestHidden(t *testing.T) {
	deepest := limits.MCPDepth - aroundSchema
	for _, tt := range []struct {
		name   string
		depth  int
		hidden bool
	}{{"fits", deepest, false}, {"too_deep", deepest + 1, true}} {
		t.Run(tt.name, func(t *testing.T) {
			d := echoTool()
			d.Name = "deep"
			// An array of arrays of …: one level of nesting each.
			n := tt.depth - 3
			d.Parameters = must(schema.Parameters(parse(`{"type":"object","properties":{"a":` +
				strings.Repeat(`{"type":"array","items":`, n) + `{"type":"string"}` + strings.Repeat(`}`, n) + `}}`)))
			f := newFixture(t, Config{}, d, echoTool())
			session := f.client(nil)
			list, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(list.Tools) == 1; got != tt.hidden {
				t.Errorf("%d tools listed, want hidden %t", len(list.Tools), tt.hidden)
			}
			if why := f.server.Hidden()["deep"]; (why != "") != tt.hidden || tt.hidden && !strings.Contains(why, "parameters are nested") {
				t.Errorf("reason %q, want one: %t", why, tt.hidden)
			}
			res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "deep", Arguments: map[string]any{}})
			if err != nil || res.IsError {
				t.Errorf("call: %v, %+v", err, res)
			}
		})
	}
}

// TestResultLimits: a value that no client could read is told, not sent.
func TestResultLimits(t *testing.T) {
	n := limits.MCPDepth
	deep := define("deep", `{"type":"object"}`, func(context.Context, *tool.Exec) (string, error) {
		return strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n), nil
	})
	long := define("long", `{"type":"string"}`, func(context.Context, *tool.Exec) (string, error) {
		return `"` + strings.Repeat(`\u0001`, 2<<20) + `"`, nil
	})
	long.Output.Render = func(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
		return []tool.Block{tool.TextBlock(strings.Repeat("\x01", 3<<20))}, nil
	}
	f := newFixture(t, Config{}, deep, long, echoTool())
	session := f.client(nil)
	for name, has := range map[string]string{"deep": "nested 1000 levels deep", "long": "does not fit into one message"} {
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); !res.IsError || !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, has) {
			t.Errorf("%s: isError %t, %.200q; want %q", name, res.IsError, got, has)
		}
	}
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{}})
	if err != nil || res.IsError {
		t.Errorf("a call afterwards: %v, %+v", err, res)
	}
}

func TestCordisCall(t *testing.T) {
	f := newFixture(t, Config{WithCall: true}, echoTool(), textTool(), failTool())
	session := f.client(nil)
	tests := []struct {
		name string
		args map[string]any
		fail bool
		want string
	}{
		{"object", map[string]any{"name": "echo", "args": map[string]any{"text": "a"}}, false, `value {"text":"a"}`},
		{"no_args", map[string]any{"name": "echo"}, false, `value {}`},
		{"string", map[string]any{"name": "say"}, false, `value "<hi>"`},
		{"unknown", map[string]any{"name": "nope"}, true, `Error: unknown tool "nope"`},
		{"failure", map[string]any{"name": "fail"}, true, "Error: nothing works"},
		{"inner_arguments", map[string]any{"name": "echo", "args": map[string]any{"text": 1}}, true, "Error: invalid arguments"},
		{"no_name", map[string]any{}, true, `missing required property "name"`},
		{"itself", map[string]any{"name": "cordis_call"}, true, "does not call itself"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "cordis_call", Arguments: tt.args})
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, res); res.IsError != tt.fail || !strings.Contains(got, tt.want) {
				t.Errorf("isError %t, %q; want %t, %q", res.IsError, got, tt.fail, tt.want)
			}
		})
	}
}

// TestCallThroughMountedListeners: a mounted guard that denies everything sees
// the inner call only, so that what no mount may refuse stays within reach.
func TestCallThroughMountedListeners(t *testing.T) {
	unrouted := textTool()
	unrouted.Unrouted = true
	f := newFixture(t, Config{WithCall: true}, echoTool(), unrouted)
	f.mount(&cordis.Plugin{Name: "denies", Apply: func(c *cordis.Context, _ any) error {
		c = tool.WithMount(c, tool.Mount{Number: 1, ID: "dyn-1", Plugin: "denies"})
		_, err := tool.PreExecute.On(c, func(_ context.Context, e *tool.Exec, _ func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			return tool.Deny("no " + e.Name), nil
		})
		return err
	}})
	session := f.client(nil)
	for _, tt := range []struct {
		name, wantText string
		wantError      bool
	}{
		{unrouted.Name, "", false},
		{echoTool().Name, "no " + echoTool().Name, true},
	} {
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "cordis_call", Arguments: map[string]any{"name": tt.name, "args": map[string]any{"text": "x"}}})
		if err != nil {
			t.Fatal(err)
		}
		if res.IsError != tt.wantError || !strings.Contains(text(t, res), tt.wantText) {
			t.Errorf("%s: error %v: %s", tt.name, res.IsError, text(t, res))
		}
	}
}
