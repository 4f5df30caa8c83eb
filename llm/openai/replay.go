package openai

import (
	"encoding/json"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// replay is what an answer leaves to be sent back with it: the name that its
// reasoning had, and the reasoning_details of routers, joined per index.
type replay struct {
	Field   string           `json:"field,omitempty"`
	Details []map[string]any `json:"details,omitempty"`
	bytes   int
}

func (r *replay) field(name string) {
	if r.Field == "" {
		r.Field = name
	}
}

// add joins streamed details: a piece with the index and the type of the last
// one continues it, its texts are appended and its other members replace.
func (r *replay) add(details []json.RawMessage) {
	for _, raw := range details {
		var d map[string]any
		if r.bytes += len(raw); r.bytes > limits.LLMReplay || json.Unmarshal(raw, &d) != nil || d == nil {
			continue
		}
		if n := len(r.Details); n > 0 && r.Details[n-1]["index"] == d["index"] && r.Details[n-1]["type"] == d["type"] && d["index"] != nil {
			for k, v := range d {
				old, isText := r.Details[n-1][k].(string)
				s, more := v.(string)
				switch {
				case (k == "text" || k == "summary" || k == "data") && isText && more:
					r.Details[n-1][k] = old + s
				case v != nil:
					r.Details[n-1][k] = v
				}
			}
			continue
		}
		r.Details = append(r.Details, d)
	}
}

func (r *replay) state() lossless.Text {
	if r.Field == "" && len(r.Details) == 0 {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil // it was made of JSON
	}
	return text
}
