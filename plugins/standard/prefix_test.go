package standard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/internal/casetest"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/anthropic"
	"github.com/dsh-go/dsh/llm/openai"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/session"
)

// changes are what a step of BenchmarkPrefix does, by its number.
var changes = map[int]string{
	20: `{name: cordis_mount, arguments: {code: "return { name: 'greeter', inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'greet', description: 'Greet.', parameters: {}, output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: () => 'hello' })) } }"}}`,
	24: `{name: cordis_unmount, arguments: {id: dyn-1}}`,
	28: `{name: cordis_mount, arguments: {code: "return { name: 'hearer', apply(ctx) { ctx.on('tools/result', () => {}) } }"}}`,
	32: `{name: cordis_mount, arguments: {code: "return { name: 'advice', inject: ['prompt'], async apply(ctx) { await ctx.prompt.section({ name: 'advice', text: 'Be brief.' }) } }"}}`,
}

// measured are the requests whose prefix is looked at: those that follow a step.
var measured = []struct {
	name    string
	request int
}{{"step", 10}, {"mount_tool", 21}, {"step_after_it", 22}, {"unmount_tool", 25}, {"mount_listener", 29}, {"mount_prompt_section", 33}}

// BenchmarkPrefix tells how much of a request a provider's cache can still have of
// the request before: the part of its tools, system text and messages, in this
// order, that is the same. The conversation has 34 steps.
func BenchmarkPrefix(b *testing.B) {
	var steps strings.Builder
	steps.WriteString("steps:\n")
	for i := range 36 {
		c := changes[i]
		if c == "" {
			c = fmt.Sprintf(`{name: bash, arguments: {command: "seq %d %d"}}`, i*1000, i*1000+200)
		}
		fmt.Fprintf(&steps, "- calls: [%s]\n", c)
	}
	steps.WriteString("- text: done\n")
	s, _ := conversation{steps.String(), true, permission.Full, casetest.Program(b)}.hold(b)
	requests := requestsOf(b, s)
	for name, a := range adapters(b) {
		for _, m := range measured {
			b.Run(name+"/"+m.name, func(b *testing.B) {
				kept, all := 0, 0
				for b.Loop() {
					before, now := cacheable(b, a, requests[m.request-1]), cacheable(b, a, requests[m.request])
					kept, all = common(before, now), len(before)
				}
				b.ReportMetric(100*float64(kept)/float64(all), "%kept")
				b.ReportMetric(float64(all-kept), "B-lost")
			})
		}
	}
}

func adapters(b *testing.B) map[string]llm.Adapter {
	o, err := openai.New(openai.Options{BaseURL: "http://127.0.0.1:9/v1"})
	if err != nil {
		b.Fatal(err)
	}
	a, err := anthropic.New(anthropic.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return map[string]llm.Adapter{"openai": o, "anthropic": a}
}

// requestsOf rebuilds every request of a log.
func requestsOf(b *testing.B, s *session.Session) []llm.Request {
	var all []llm.Request
	inStep := false
	for _, e := range s.Events(0) {
		switch e.Type {
		case session.TypeStepStart:
			inStep = true
		case session.TypeChunk:
			if !inStep {
				continue
			}
			inStep = false
			r, err := s.RequestAt(e.Seq)
			if err != nil {
				b.Fatal(err)
			}
			request, err := agent.RequestOf(r, "s")
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, request)
		}
	}
	return all
}

// cacheable is what a provider's cache sees of a request: tools, system text and
// messages, in this order, without the marks, which move.
func cacheable(b *testing.B, a llm.Adapter, r llm.Request) string {
	body, err := a.Encode(&r)
	if err != nil {
		b.Fatal(err)
	}
	var parts struct{ Tools, System, Messages json.RawMessage }
	if err := json.Unmarshal(body, &parts); err != nil {
		b.Fatal(err)
	}
	text := strings.TrimSuffix(string(parts.Tools), "]") + string(parts.System) + strings.TrimSuffix(string(parts.Messages), "]")
	return strings.ReplaceAll(text, `,"cache_control":{"type":"ephemeral"}`, "")
}

// common is how many bytes at the beginning are the same.
func common(x, y string) int {
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}
