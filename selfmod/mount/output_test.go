package mount

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/dsh-go/dsh/tool"
)

// outputs are texts of what a call brings back, as it is and as it should not be.
var outputs = []string{
	`{"value":"x","content":[{"type":"text","text":"x"}]}`,
	`{"value":{"a":[1,{"b":"}]\\\""}]},"content":[],"meta":{"m":1}}`,
	` { "value" : 1 , "content" : [ ] } `,
	`{"value":1,"contentError":"render failed: \u0041"}`,
	`{"value":1,"metaError":"m","content":[{"type":"text","text":"a\nb"},{"type":"image","data":"AA=="}]}`,
	`{"content":[{"type":"text","text":"a\"b"}]}`, `{"content":[{"type":"text","text":"a","text":"b"}]}`, "{\"content\":[{\"type\":\"text\",\"text\":\"a\nb\"}]}",
	"{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\"}]}", `{"content":[{"type":"text","text":""}]}`, `{"content":[{"type":"text","text":"}]}`,
	`{"value":1,"value":2}`, `{"Value":1}`, `{"v\u0061lue":1}`, `{}`, `[]`, `null`, ``, `{`, `{"value":`, `{"value":}`, `{"value":1,}`,
	`{"value":1}}`, `{"value":1}x`, `{"value":[}`, `{"value":"}`, `{"value":"\\`, `{"content":null}`, `{"content":[null]}`, `{"content":[1,2]}`,
	`{"content":[{"type":"text","text":"x"},]}`, `{"content":[{"type":"text","text":"x"}`, `{"content":{"type":"text"}}`,
}

// checkOutput compares what is read with what package json reads. Text that package
// json refuses may be taken apart: whoever uses a part parses it.
func checkOutput(t *testing.T, text string) {
	t.Helper()
	got, err := readOutput([]byte(text))
	var want output
	if wantErr := json.Unmarshal([]byte(text), &want); wantErr != nil {
		if err == nil && json.Valid(got.Value) && json.Valid(got.Content) && (got.Meta == nil || json.Valid(got.Meta)) && json.Valid([]byte(text)) {
			t.Errorf("%q was read: %+v; package json: %v", text, got, wantErr)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q gave %s, %v; want %s", text, got, err, want)
	}
	var wantBlocks []tool.Block
	wantErr := json.Unmarshal(want.Content, &wantBlocks)
	blocks, err := readBlocks(want.Content)
	if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(blocks, wantBlocks) {
		t.Errorf("%q gave the blocks %v, %v; want %v, %v", text, blocks, err, wantBlocks, wantErr)
	}
}

func TestReadOutput(t *testing.T) {
	t.Parallel()
	for _, text := range outputs {
		checkOutput(t, text)
	}
}

func FuzzReadOutput(f *testing.F) {
	for _, text := range outputs {
		f.Add(text)
	}
	f.Fuzz(checkOutput)
}
