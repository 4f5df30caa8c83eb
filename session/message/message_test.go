package message_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session/message"
)

// TestRoundTrip: every field of a message survives its JSON.
func TestRoundTrip(t *testing.T) {
	for _, m := range []message.Message{
		{ID: "u", Role: message.User, Content: []message.Block{message.Plain("hello \xff"), message.Plain(""),
			{Type: message.ImageBlock, Attachment: &message.Attachment{Hash: strings.Repeat("a", 64), MediaType: "image/png", Size: 3, Name: "x"}}},
			Source: message.Source{Kind: message.SourcePlugin, Name: "p"}},
		{ID: "a", Role: message.Assistant, Content: []message.Block{{Type: message.ReasoningBlock}, {Type: message.ReasoningBlock, Text: "hm", Signature: "s\xff", Redacted: "r"}, {Type: message.CallBlock, ID: "c", Name: "n", Arguments: "{"}},
			Source: message.Source{Kind: message.SourceModel, Provider: "p", Model: "m", ReplayState: lossless.Obj(lossless.M("sig", lossless.Str("x")))}},
		message.Result("r", "c", true, message.Plain("x"), message.Block{Type: "newer"}),
	} {
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var got message.Message
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, got, cmp.Comparer(lossless.Equal)); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(m, m.Clone(), cmp.Comparer(lossless.Equal)); d != "" {
			t.Error(d)
		}
	}
}

// TestUsage: each token counts once.
func TestUsage(t *testing.T) {
	u := message.Usage{Input: 1, CacheRead: 2, CacheWrite: 4, Output: 8, Reasoning: 16}
	if u.Total() != 31 || u.Prompt() != 7 || u.Add(u).Total() != 62 {
		t.Errorf("%d %d %+v", u.Total(), u.Prompt(), u.Add(u))
	}
}

// TestText: any bytes come back.
func TestText(t *testing.T) {
	same := func(b []byte) bool {
		text, err := json.Marshal(message.Text(b))
		if err != nil || !json.Valid(text) {
			return false
		}
		var got message.Text
		return json.Unmarshal(text, &got) == nil && string(got) == string(b)
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
	for _, b := range []string{"", "plain", "\xed\xa0\xbd", "\xed\xa0\xbd\xed\xb8\x80", "\x00\x1f\u2028", "\xf0\x9f"} {
		if !same([]byte(b)) {
			t.Errorf("%q is lost", b)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no-object", `[]`, "a message is an object, not: array"},
		{"id-kind", `{"id":1}`, "id: it is a text"},
		{"content-kind", `{"content":{}}`, "content: it is a list"},
		{"block-kind", `{"content":[1]}`, "block 0: a block is an object"},
		{"deep", `{"content":[{"content":[{"content":[{}]}]}]}`, "nested deeper"},
		{"error-kind", `{"content":[{"isError":1}]}`, "true or false"},
		{"attachment", `{"content":[{"attachment":{"size":"x"}}]}`, "size: it is an integer"},
		{"base64", `{"content":[{"text":{"base64":"?"}}]}`, "base64"},
		{"source", `{"source":1}`, "a source is an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m message.Message
			if err := json.Unmarshal([]byte(c.text), &m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	call := message.Block{Type: message.CallBlock, ID: "c", Name: "n"}
	for _, c := range []struct {
		name string
		m    message.Message
		want string
	}{
		{"role", message.Message{ID: "x", Role: "system"}, `the role is "system"`},
		{"no-source", message.Message{ID: "x", Role: message.User}, "no kind"},
		{"call-of-the-user", message.Message{ID: "x", Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{call}}, "message of the assistant"},
		{"two-results", message.Message{ID: "x", Role: message.User, Source: message.Source{Kind: "tool", CallID: "c"},
			Content: []message.Block{{Type: message.ResultBlock, CallID: "c"}, {Type: message.ResultBlock, CallID: "c"}}}, "holds that one block"},
		{"result-elsewhere", message.Message{ID: "x", Role: message.User, Source: message.Source{Kind: "tool", CallID: "d"},
			Content: []message.Block{{Type: message.ResultBlock, CallID: "c"}}}, "names its call"},
		{"call-in-result", message.Result("x", "c", false, call), "content 0"},
		{"no-type", message.Message{ID: "x", Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{{}}}, "no type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.m.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestCloneAll: copies share nothing that can be changed, with the messages or with
// each other, and are equal to them.
func TestCloneAll(t *testing.T) {
	original := func() []message.Message {
		image := func() message.Block {
			return message.Block{Type: message.ImageBlock, Attachment: &message.Attachment{Hash: strings.Repeat("a", 64)}}
		}
		return []message.Message{
			{ID: "1", Role: message.User, Content: []message.Block{message.Plain("a"), image()}},
			{ID: "2", Role: message.User, Content: []message.Block{}},
			message.Result("3", "c", false, message.Plain("x"), image()),
			{ID: "4", Role: message.User},
			{ID: "5", Role: message.User, Content: []message.Block{message.Plain("z")}},
		}
	}
	same := cmp.Comparer(lossless.Equal)
	from := original()
	cloned := slices.Clone(from)
	message.CloneAll(cloned)
	if d := cmp.Diff(from, cloned, same); d != "" {
		t.Fatal(d)
	}
	for i := range cloned {
		_ = append(cloned[i].Content, message.Plain("grown"))
		for j := range cloned[i].Content {
			b := &cloned[i].Content[j]
			b.Text += "changed"
			_ = append(b.Content, message.Plain("grown"))
			if b.Attachment != nil {
				b.Attachment.Hash = "changed"
			}
			for n := range b.Content {
				b.Content[n].Text += "changed"
			}
		}
	}
	if d := cmp.Diff(original(), from, same); d != "" {
		t.Errorf("the messages were changed: %s", d)
	}
	if cloned[4].Content[0].Text != "zchanged" {
		t.Errorf("a message was overwritten: %+v", cloned[4])
	}
}

func TestFromPlugin(t *testing.T) {
	m := message.FromPlugin("m-1", "notice", message.Plain("look"), message.Plain(" here"))
	if err := m.Check(); err != nil || m.ID != "m-1" || m.Role != message.User || m.Text() != "look here" {
		t.Errorf("%+v, %v", m, err)
	}
	if !m.Source.IsPlugin("notice") || m.Source.IsPlugin("other") {
		t.Errorf("source %+v", m.Source)
	}
	if (message.Source{Kind: message.SourceUser, Name: "notice"}).IsPlugin("notice") {
		t.Error("a person is no plugin")
	}
}
