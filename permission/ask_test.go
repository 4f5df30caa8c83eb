package permission_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

func parse(t *testing.T, rules ...string) []permission.Rule {
	t.Helper()
	list, err := permission.ParseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestRemember: what is allowed for the session is asked once, in this life of the
// session and the next, for the model and not for a mount.
func TestRemember(t *testing.T) {
	r := newRig(t, permission.Config{})
	release, err := r.policy.Bind(r.scope, permission.Binding{Session: r.session, Ask: r.ask})
	if err != nil {
		t.Fatal(err)
	}
	r.answers(permission.Answer{Allow: true, Remember: true})
	for range 2 {
		for _, act := range [][2]string{{"bash", "touch t"}, {"write", "w.txt"}, {"fetch", r.url + "/x"}, {"fetch", r.url + "/y"}, {"search", "x"}} {
			if res := r.act(act[0], act[1]); res.IsError && act[0] != "search" {
				t.Fatalf("%v: %s", act, selfmodtest.Text(res))
			}
		}
	}
	var got []string
	for _, q := range r.asked() {
		rule, _, _ := strings.Cut(q.Remember, ": ")
		got = append(got, strings.ReplaceAll(strings.ReplaceAll(rule, r.dir, "DIR"), r.url, "URL"))
	}
	if diff := cmp.Diff([]string{"bash(=touch t)", "edit(DIR/w.txt)", "fetch(URL/*)", "search"}, got); diff != "" {
		t.Error(diff)
	}
	if res := r.act("bash", "touch u"); res.IsError || len(r.asked()) != 1 {
		t.Errorf("another command: %s", selfmodtest.Text(res))
	}

	// The next life of the session remembers too; without anybody to ask it shows.
	release()
	r.bind(permission.Binding{}, true)
	if res := r.act("bash", "touch t"); res.IsError {
		t.Errorf("after a resume: %s", selfmodtest.Text(res))
	}
	if res := r.act("bash", "touch other"); !res.IsError {
		t.Error("what nobody allowed was allowed after a resume")
	}
}

// TestRememberMount: what is remembered of a mount is bound to its source.
func TestRememberMount(t *testing.T) {
	r := newRig(t, permission.Config{})
	r.bind(permission.Binding{}, false)
	r.answers(permission.Answer{Allow: true, Remember: true})
	code := plugin("p")
	id := r.mounted(code)
	write := func() *tool.Result { return r.call("p_write", map[string]string{"arg": "w.txt"}) }
	if res := write(); res.IsError {
		t.Fatal(selfmodtest.Text(res))
	}
	if n := len(r.asked()); n != 3 { // to mount, to call, to write
		t.Fatalf("%d questions", n)
	}
	if res := write(); res.IsError || len(r.asked()) > 0 {
		t.Errorf("asked again: %s", selfmodtest.Text(res))
	}
	// The same file by the model is another matter.
	if r.act("write", "w.txt"); len(r.asked()) != 1 {
		t.Error("what a mount may do, the model may do")
	}
	r.call("cordis_unmount", map[string]string{"id": id})
	id = r.mounted(code) // the same code
	if res := write(); res.IsError || len(r.asked()) > 0 {
		t.Errorf("the same code was asked about again: %s", selfmodtest.Text(res))
	}
	r.call("cordis_unmount", map[string]string{"id": id})
	r.mounted(code + "\n// another")
	if res := write(); res.IsError || len(r.asked()) != 3 {
		t.Errorf("other code was not asked about: %s", selfmodtest.Text(res))
	}
	for _, line := range r.approvals() {
		if strings.HasPrefix(line, "rule tool") && !strings.HasSuffix(line, "bound=true") {
			t.Errorf("not bound: %s", line)
		}
	}
}

// TestLog: every question and denial is in the log.
func TestLog(t *testing.T) {
	r := newRig(t, permission.Config{})
	r.bind(permission.Binding{Deny: parse(t, "bash(rm *)")}, false)
	r.act("bash", "touch a")
	r.answers(permission.Answer{Allow: true})
	r.act("bash", "touch b")
	r.answers(permission.Answer{Allow: true, Remember: true})
	r.act("bash", "touch c")
	r.answers(permission.Answer{Stop: true, Reason: "enough"})
	res := r.act("bash", "touch d")
	r.act("bash", "rm a")
	want := []string{
		"mode ask",
		`asked act "" "run touch a"`, "decided deny once user",
		`asked act "" "run touch b"`, "decided allow once user",
		`asked act "" "run touch c"`, "decided allow session user", "rule bash(=touch c) allow bound=false",
		`asked act "" "run touch d"`, "decided deny stop user",
		`asked act "" "run rm a"`, "decided deny once policy",
	}
	if diff := cmp.Diff(want, r.approvals()); diff != "" {
		t.Error(diff)
	}
	if text := selfmodtest.Text(res); !strings.Contains(text, "run touch d was denied: the user denied it and ended the turn, and says: enough") {
		t.Errorf("the model reads %s", text)
	}
}

// TestHeadless: without anybody to ask a denial says how to allow, and the way works.
func TestHeadless(t *testing.T) {
	tests := []struct{ do, arg, rule, covers, mode string }{
		{"bash", "touch x", "bash(=touch x)", " (this very line only; bash(program *) allows a program with any arguments)", "full"},
		{"bash", "go test ./...", "bash(go test *)", ", or", "full"},
		{"write", "n.txt", "edit(DIR/n.txt)", " (edit rules cover write and edit; edit(src/**) allows a folder)", "auto-edit or full"},
		{"fetch", "URL/x", "fetch(URL/*)", ", or", "full"},
		{"search", "words", "search", ", or", "full"},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			r := newRig(t, permission.Config{})
			place := strings.NewReplacer("DIR", r.dir, "URL", r.url)
			release, err := r.policy.Bind(r.scope, permission.Binding{Session: r.session})
			if err != nil {
				t.Fatal(err)
			}
			res := r.act(tt.do, place.Replace(tt.arg))
			text := selfmodtest.Text(res)
			for _, part := range []string{"denied", "nobody to ask", "--allow '" + place.Replace(tt.rule) + "'" + tt.covers, "--permission " + tt.mode} {
				if !strings.Contains(text, part) {
					t.Errorf("the denial lacks %q: %s", part, text)
				}
			}
			if got := r.approvals(); !slices.Contains(got, "decided deny once headless") {
				t.Errorf("logged: %q", got)
			}
			release()
			r.bind(permission.Binding{Allow: parse(t, place.Replace(tt.rule))}, true)
			if res := r.act(tt.do, place.Replace(tt.arg)); strings.Contains(selfmodtest.Text(res), "denied") {
				t.Errorf("with the rule: %s", selfmodtest.Text(res))
			}
		})
	}
}

// TestQuestions: what a person is shown.
func TestQuestions(t *testing.T) {
	r := newRig(t, permission.Config{})
	r.bind(permission.Binding{}, false)
	only := func() permission.Question {
		t.Helper()
		list := r.asked()
		if len(list) != 1 {
			t.Fatalf("%d questions", len(list))
		}
		if q := list[0]; q.ID == "" || q.Summary == "" || len(q.Detail) > limits.PermissionDetail {
			t.Errorf("got %+v", q)
		}
		return list[0]
	}
	contains := func(q permission.Question, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(q.Detail, part) {
				t.Errorf("the detail lacks %q:\n%s", part, q.Detail)
			}
		}
	}
	r.act("bash", "touch x\n# and more")
	q := only()
	contains(q, "touch x\n# and more", "in "+r.dir, "touch is not on the list")
	if q.Kind != permission.KindExecute || q.Tool != "act" || q.CallID != "call-act" || q.Mount != "" || q.Card == nil || q.Card.Terminal == nil || q.Card.Terminal.Cwd != r.dir {
		t.Errorf("got %+v", q)
	}
	r.act("write", "a.txt")
	q = only()
	if d := q.Card.Diff; q.Kind != permission.KindEdit || d == nil || *d.Diffs[0].OldText != "old\n" || d.Diffs[0].NewText != "new" || q.Card.Validate() != nil {
		t.Errorf("got %+v", q.Card)
	}
	r.act("edit", "a.txt")
	if d := only().Card.Diff; d == nil || *d.Diffs[0].OldText != "old" || d.Diffs[0].NewText != "new" {
		t.Errorf("got %+v", d)
	}
	r.act("remove", "a.txt")
	if q = only(); q.Remember != "" || !strings.Contains(q.Summary, "remove") || !strings.Contains(q.Summary, "with everything") {
		t.Errorf("got %+v", q)
	}
	r.call("cordis_mount", map[string]string{"code": plugin("p")})
	q = only()
	contains(q, "As far as its text tells, it injects ['tools', 'fs', 'bash', 'web'].", "apply(ctx)", "ctx.bash.run")
	if q.Kind != permission.KindMount {
		t.Errorf("got %+v", q)
	}
	r.call("cordis_mount", map[string]string{"code": "const inject = ['a']; inject.push('bash'); return { inject, apply() {} }"})
	contains(only(), "it injects what the code computes: read it.")
	r.answers(permission.Answer{Allow: true})
	r.mounted(plugin("p"))
	r.asked()
	r.answers(permission.Answer{})
	r.call("p_bash", map[string]string{"arg": "touch x"})
	q = only()
	contains(q, `{"arg":"touch x"}`)
	if q.Mount != "dyn-1 (p)" || q.Tool != "p_bash" {
		t.Errorf("got %+v", q)
	}
}

// TestOneAtATime: questions of one session do not overlap; what an answer decides
// for the others they are not asked; a cancelled call takes its question back.
func TestOneAtATime(t *testing.T) {
	r := newRig(t, permission.Config{})
	began, answers := make(chan permission.Question, 100), make(chan permission.Answer)
	release, err := r.policy.Bind(r.scope, permission.Binding{Session: r.session, Ask: func(ctx context.Context, q permission.Question) (permission.Answer, error) {
		began <- q
		select {
		case a := <-answers:
			return a, nil
		case <-ctx.Done():
			return permission.Answer{}, ctx.Err()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	results := make(chan *tool.Result, 3)
	for range 3 {
		go func() { results <- r.act("bash", "touch same") }()
	}
	<-began
	answers <- permission.Answer{Allow: true, Remember: true}
	for range 3 {
		if res := <-results; res.IsError {
			t.Errorf("got %s", selfmodtest.Text(res))
		}
	}
	if len(began) > 0 {
		t.Error("the same was asked again")
	}

	ctx, cancel := context.WithCancel(r.ctx())
	go func() { results <- r.callContext(ctx, "act", map[string]string{"do": "bash", "arg": "touch first"}) }()
	<-began
	go func() { results <- r.act("bash", "touch second") }()
	cancel() // the first gives way to the second
	if res := <-results; !res.IsError || res.Error.Code != tool.CodeAborted {
		t.Errorf("the cancelled call: %s", selfmodtest.Text(res))
	}
	if q := <-began; q.Summary != "run touch second" {
		t.Errorf("got %q", q.Summary)
	}
	answers <- permission.Answer{Allow: true}
	if res := <-results; res.IsError {
		t.Errorf("the second: %s", selfmodtest.Text(res))
	}
	if !slices.Contains(r.approvals(), "decided deny once cancelled") {
		t.Errorf("the cancelled question has no end: %q", r.approvals())
	}
}

// TestPatience: the time limit of a plugin's call does not pass while a person is
// asked about what it does, also after its first await.
func TestPatience(t *testing.T) {
	const limit = 200 * time.Millisecond
	r := newRigWith(t, permission.Config{}, selfmod.Config{CallTimeout: limit})
	r.mounted(`return { name: 'w', inject: ['tools', 'fs'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'w', description: 'd', parameters: {},
			output: { schema: { type: 'string' }, render(_a, v) { return [{ type: 'text', text: v }] } },
			async execute() { await ctx.fs.readText('a.txt'); await ctx.fs.writeText('a.txt', 'new'); return 'written' } }))
	} }`)
	release, err := r.policy.Bind(r.scope, permission.Binding{Session: r.session, Allow: parse(t, "tool(w)"),
		Ask: func(ctx context.Context, _ permission.Question) (permission.Answer, error) {
			select { // a slow person
			case <-time.After(5 * limit):
				return permission.Answer{Allow: true}, nil
			case <-ctx.Done():
				return permission.Answer{}, ctx.Err()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if res := r.call("w", map[string]string{}); res.IsError || r.text("a.txt") != "new" {
		t.Errorf("got %s", selfmodtest.Text(res))
	}
}

// TestAskerFails: an asker that fails or panics denies.
func TestAskerFails(t *testing.T) {
	for name, ask := range map[string]permission.Asker{
		"error": func(context.Context, permission.Question) (permission.Answer, error) {
			return permission.Answer{Allow: true}, errors.New("the terminal is gone")
		},
		"panic": func(context.Context, permission.Question) (permission.Answer, error) { panic("the terminal is gone") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, permission.Config{})
			release, err := r.policy.Bind(r.scope, permission.Binding{Session: r.session, Ask: ask})
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if res := r.act("bash", "touch x"); !res.IsError || !strings.Contains(selfmodtest.Text(res), "the terminal is gone") || r.text("x") != "" {
				t.Errorf("got %s", selfmodtest.Text(res))
			}
		})
	}
}

// TestTooManyQuestions: a mount cannot pile up questions.
func TestTooManyQuestions(t *testing.T) {
	r := newRig(t, permission.Config{})
	hold := make(chan struct{})
	release, err := r.policy.Bind(r.scope, permission.Binding{Session: r.session, Ask: func(context.Context, permission.Question) (permission.Answer, error) {
		<-hold
		return permission.Answer{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	n := limits.PermissionWaiting + 2
	results := make(chan string, n)
	for range n {
		go func() { results <- selfmodtest.Text(r.act("bash", "touch x")) }()
	}
	if first := <-results; !strings.Contains(first, "questions wait for an answer already") {
		t.Errorf("got %s", first)
	}
	close(hold)
	for range n - 1 {
		<-results
	}
}
