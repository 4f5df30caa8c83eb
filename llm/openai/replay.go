package openai

import (
	"encoding/json"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// replay is what an answer leaves to be sent back with it: the name that its
// reasoning had, and the reasoning_details of routers, joined per index.
type replay struct {
	Field   string           `json:"field,omitempty"`
	Details []map[string]any `json:"details,omitempty"`

	bytes   int
	growing map[string]*strings.Builder // the texts of the last detail
}

func (r *replay) field(name string) {
	if r.Field == "" {
		r.Field = name
	}
}

// add joins streamed details: a piece with the index and the type of the last
// one continues it, its texts are appended and its other members replace. What
// passes limits.LLMReplay is left out.
func (r *replay) add(details []json.RawMessage) {
	for _, raw := range details {
		var d map[string]any
		if r.bytes += len(raw); r.bytes > limits.LLMReplay || json.Unmarshal(raw, &d) != nil || d == nil {
			continue
		}
		if !r.continues(d) {
			r.settle()
			r.Details = append(r.Details, map[string]any{})
			r.growing = map[string]*strings.Builder{}
		}
		last := r.Details[len(r.Details)-1]
		for k, v := range d {
			switch s, isText := v.(string); {
			case isText && (k == "text" || k == "summary" || k == "data"):
				if r.growing[k] == nil {
					r.growing[k] = &strings.Builder{}
				}
				r.growing[k].WriteString(s)
			case v != nil || last[k] == nil:
				last[k] = v
			}
		}
	}
}

func (r *replay) continues(d map[string]any) bool {
	if len(r.Details) == 0 {
		return false
	}
	last := r.Details[len(r.Details)-1]
	index, counted := d["index"].(float64)
	before, was := last["index"].(float64)
	kind, _ := d["type"].(string)
	kindBefore, _ := last["type"].(string)
	return counted && was && index == before && kind == kindBefore
}

// settle puts the texts of the last detail into it.
func (r *replay) settle() {
	for k, text := range r.growing {
		r.Details[len(r.Details)-1][k] = text.String()
	}
	r.growing = nil
}

// state returns what is kept with the message, null for nothing. Details that are
// nested deeper than a log takes are left out.
func (r *replay) state() lossless.Value {
	if r.Field == "" && len(r.Details) == 0 {
		return lossless.Value{}
	}
	r.settle()
	state, err := lossless.From(r)
	if err != nil {
		return lossless.Value{}
	}
	return state
}
