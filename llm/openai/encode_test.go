package openai

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
)

func encoded(t *testing.T, a *Adapter, r *llm.Request) string {
	t.Helper()
	b, err := a.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func conversation() *llm.Request {
	call := llm.Message{Role: llm.Assistant, Source: llm.Source{Kind: llm.SourceModel, Provider: "p", ReplayState: lossless.Obj(lossless.M("field", lossless.Str("reasoning")))}, Content: []llm.Block{
		{Type: llm.ReasoningBlock, Text: "hm"},
		{Type: llm.CallBlock, ID: "1", Name: "f", Arguments: `{"a": 1.0, <é>`},
		{Type: llm.CallBlock, ID: "2", Name: "g"},
	}}
	plain := llm.Message{Role: llm.Assistant, Source: llm.Source{Provider: "p"}, Content: []llm.Block{{Type: llm.ReasoningBlock, Text: "hm"}, llm.Plain("done")}}
	return &llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, System: "sys",
		Messages: []llm.Message{llm.UserText("hi"), call, llm.Result("", "1", false, llm.Plain("one")), llm.UserText("wait"), llm.Result("", "2", true), plain, {Role: llm.Assistant}, llm.UserText("more")},
		Tools:    []llm.Tool{{Name: "f", Description: "d", Parameters: lossless.Obj(lossless.M("type", lossless.Str("object")))}}}
}

func TestEncode(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],`
	messages := func(reasoning string) string {
		return `"messages":[{"role":"system","content":"sys"},{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":""` + reasoning + `,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0, <é>"}},{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
			`{"role":"tool","content":"one","tool_call_id":"1"},{"role":"tool","content":"(no output)","tool_call_id":"2"},{"role":"user","content":"wait"},` +
			`{"role":"assistant","content":"done"},{"role":"user","content":"more"}]}`
	}
	for _, c := range []struct {
		name, url, model, effort, purpose, head, reasoning string
		provider                                           string
	}{
		{"deepseek", DeepSeekURL, "m", "max", "", `"max_tokens":9,"thinking":{"type":"enabled"},"reasoning_effort":"max",`, `,"reasoning_content":"hm"`, "p"},
		{"deepseekOff", DeepSeekURL, "m", "off", "", `"max_tokens":9,"thinking":{"type":"disabled"},`, `,"reasoning_content":"hm"`, "p"},
		{"deepseekTitle", DeepSeekURL, "m", "high", llm.PurposeTitle, `"max_tokens":9,"thinking":{"type":"disabled"},`, `,"reasoning_content":"hm"`, "p"},
		{"deepseekForeign", DeepSeekURL, "m", "", "", `"max_tokens":9,`, `,"reasoning_content":""`, "q"},
		{"deepseekElsewhere", "http://h/v1", "x/DeepSeek-V4", "", "", `"max_tokens":9,`, `,"reasoning_content":"hm"`, "p"},
		{"openai", OpenAIURL, "m", "low", "", `"max_completion_tokens":9,"reasoning_effort":"low",`, "", "p"},
		{"compatible", "http://h/v1", "m", "", "", `"max_tokens":9,`, `,"reasoning":"hm"`, "p"},
		{"compatibleForeign", "http://h/v1", "m", "", "", `"max_tokens":9,`, "", "q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := conversation()
			r.Model, r.MaxTokens, r.Effort, r.Purpose, r.Provider = c.model, 9, c.effort, c.purpose, c.provider
			want := `{"model":"` + c.model + `","stream":true,"stream_options":{"include_usage":true},` + c.head + tools + messages(c.reasoning)
			if d := cmp.Diff(want, encoded(t, adapter(t, c.url), r)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestImages(t *testing.T) {
	r := request()
	picture := llm.Block{Type: llm.ImageBlock, Attachment: &llm.Attachment{Hash: "h", MediaType: "image/png"}}
	r.Messages = []llm.Message{{Role: llm.User, Content: []llm.Block{llm.Plain("see"), picture}},
		{Role: llm.User, Content: []llm.Block{{Type: llm.ResultBlock, CallID: "1", Content: []llm.Block{picture}}}}}
	r.Attachment = func(string) ([]byte, error) { return []byte("PNG"), nil }
	got := encoded(t, adapter(t, OpenAIURL), r)
	for _, want := range []string{
		`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}}]}`,
		`{"role":"tool","content":"(no output)","tool_call_id":"1"},{"role":"user","content":[{"type":"text","text":"Image in the result of call 1:"},{"type":"image_url"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	var f *llm.Failure
	if _, err := adapter(t, DeepSeekURL).Encode(r); !errors.As(err, &f) || f.Code != llm.CodeUnsupportedContent {
		t.Errorf("DeepSeek takes an image: %v", err)
	}
	r.Attachment = func(string) ([]byte, error) { return nil, errors.New("gone") }
	if _, err := adapter(t, OpenAIURL).Encode(r); !errors.As(err, &f) || f.Code != llm.CodeUnsupportedContent {
		t.Errorf("an image without bytes: %v", err)
	}
}

// TestReplay: what a router hides in its reasoning goes back as it came.
func TestReplay(t *testing.T) {
	body := string(event(`{"choices":[{"index":0,"delta":{"reasoning":"a","reasoning_details":[{"index":0,"type":"reasoning.text","text":"a"}]}}]}`)) +
		string(event(`{"choices":[{"index":0,"delta":{"reasoning":"b","reasoning_details":[{"index":0,"type":"reasoning.text","text":"b","signature":"sig"}]}}]}`)) +
		string(event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`))
	a, err := decode([]byte(body))
	if err != nil || a.Failure != nil {
		t.Fatal(err, a.Failure)
	}
	r := request()
	r.Messages = append(r.Messages, a.Message("x", r.Config))
	got := encoded(t, adapter(t, "http://h/v1"), r)
	if want := `"reasoning_details":[{"index":0,"signature":"sig","text":"ab","type":"reasoning.text"}]`; !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
	// A detail of another shape is no reason to fall over.
	odd := strings.ReplaceAll(body, `"index":0,"type":"reasoning.text"`, `"index":{"a":[]},"type":[1]`)
	if a, err := decode([]byte(odd)); err != nil || a.Failure != nil {
		t.Errorf("odd details: %v, %v", err, a.Failure)
	}
	r.Provider = "other"
	if got := encoded(t, adapter(t, "http://h/v1"), r); strings.Contains(got, "sig") {
		t.Errorf("another provider is sent\n%s", got)
	}
}

func TestNew(t *testing.T) {
	for _, url := range []string{"", "host", "ftp://h", "http://", "http://me:secret@h/v1", "http://h\x00"} {
		if _, err := New(Options{BaseURL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("New(%q): %v", url, err)
		}
	}
	a := adapter(t, DeepSeekURL, func(o *Options) { o.Known, o.Closed = DeepSeekModels(), true })
	if _, err := a.Model("nope"); err == nil || !strings.Contains(err.Error(), "deepseek-v4-pro") {
		t.Errorf("an unknown model: %v", err)
	}
}
