package permission_test

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// TestInput: the input that a plugin gives a shell is part of the question.
func TestInput(t *testing.T) {
	r := newRig(t, permission.Config{})
	r.mounted(`return { name: 'i', inject: ['tools', 'bash'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'i', description: 'd', parameters: { text: { type: 'string' } },
			output: { schema: { type: 'string' }, render(_a, v) { return [{ type: 'text', text: v }] } },
			async execute(args) { return (await ctx.bash.run('sh', { stdin: args.text })).stdout.text } }))
	} }`)
	r.bind(permission.Binding{Allow: parse(t, "tool(i)", "bash(=sh)")}, false)
	res := r.call("i", map[string]string{"text": "touch z"})
	list := r.asked()
	if len(list) != 1 || list[0].Remember != "" || !strings.Contains(list[0].Detail, "with 7 bytes of input:\ntouch z") {
		t.Errorf("%s, %+v", selfmodtest.Text(res), list)
	}
}
