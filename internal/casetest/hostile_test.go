package casetest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
)

// session is a client of the real program, for tests.
type session struct {
	*Client
	t *testing.T
}

func open(t *testing.T, args ...string) *session {
	t.Helper()
	client, err := Start(t.Context(), Program(t), append([]string{"mcp"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{client, t}
	t.Cleanup(func() { _ = client.Kill() })
	return s
}

func (s *session) call(tool string, args any) Answer {
	s.t.Helper()
	return s.wait(s.send(tool, args))
}

func (s *session) send(tool string, args any) func(context.Context) (Answer, error) {
	s.t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	wait, err := s.Call(tool, text)
	if err != nil {
		s.t.Fatal(err)
	}
	return wait
}

func (s *session) wait(wait func(context.Context) (Answer, error)) Answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), answerWithin)
	defer cancel()
	a, err := wait(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *session) mount(code string) string {
	s.t.Helper()
	a := s.call("cordis_mount", map[string]string{"code": code})
	if a.IsError {
		s.t.Fatalf("mount: %s", a.Text)
	}
	return a.Text
}

// list is the raw tools of tools/list, by name.
func (s *session) list() map[string]map[string]json.RawMessage {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), answerWithin)
	defer cancel()
	result, err := s.Request(ctx, "tools/list", json.RawMessage("{}"))
	if err != nil {
		s.t.Fatal(err)
	}
	var l struct{ Tools []map[string]json.RawMessage }
	if err := json.Unmarshal(result, &l); err != nil {
		s.t.Fatal(err)
	}
	tools := map[string]map[string]json.RawMessage{}
	for _, x := range l.Tools {
		tools[strings.Trim(string(x["name"]), `"`)] = x
	}
	return tools
}

// notified counts notifications of a method so far.
func (s *session) notified(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.notes {
		if m == method {
			n++
		}
	}
	return n
}

func (s *session) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(answerWithin); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not within %v", what, answerWithin)
		}
	}
}

func (s *session) close() {
	s.t.Helper()
	if err := s.Close(shutdownWithin); err != nil {
		s.t.Errorf("%v; standard error:\n%s", err, s.Stderr())
	}
}

// plugin is the code of a plugin with tools: name, output schema, execute.
func plugin(tools ...[3]string) string {
	var b strings.Builder
	b.WriteString("return { name: 'hostile', inject: ['tools', 'timer'], apply(ctx) {\n")
	for _, x := range tools {
		fmt.Fprintf(&b, "harness.registerTool(ctx, harness.defineTool({ name: '%s', description: 'd', parameters: {}, output: { schema: %s, render: (a, v) => [{ type: 'text', text: JSON.stringify(v) }] }, execute: %s }))\n", x[0], x[1], x[2])
	}
	return b.String() + "} }"
}

// TestCancellationReachesPlugin: the client's cancellation fires exec.signal.
func TestCancellationReachesPlugin(t *testing.T) {
	s := open(t)
	s.mount("let seen = 'nothing', started = false\n" + plugin(
		[3]string{"hang", "{ type: 'null' }", "(args, exec) => new Promise((ok) => { started = true; exec.signal.addEventListener('abort', () => { seen = exec.signal.reason.name; ok(null) }) })"},
		[3]string{"seen", "{ type: 'string' }", "() => started ? seen : 'not started'"}))
	s.send("hang", struct{}{})
	s.mu.Lock()
	id := s.next
	s.mu.Unlock()
	s.eventually("the call", func() bool { return s.call("seen", struct{}{}).Text == `"nothing"` })
	if err := s.Write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"enough"}}`, id)); err != nil {
		t.Fatal(err)
	}
	s.eventually("the signal", func() bool { return s.call("seen", struct{}{}).Text == `"AbortError"` })
	s.close()
}

// TestProgressAndListChanges: progress is told to who asked for it, and a burst
// of changes is one notification.
func TestProgressAndListChanges(t *testing.T) {
	s := open(t)
	var tools [][3]string
	for i := range 40 {
		tools = append(tools, [3]string{fmt.Sprintf("t%d", i), "{ type: 'null' }", "(args, exec) => { for (let i = 0; i < 1000; i++) exec.progress({ text: '\\u001b[31mx\\n'.repeat(2000), done: i, total: 1000 }); return null }"})
	}
	before := s.notified("notifications/tools/list_changed")
	s.mount(plugin(tools...))
	s.eventually("the notification", func() bool { return s.notified("notifications/tools/list_changed") > before })
	s.call("t0", struct{}{})
	if n := s.notified("notifications/progress"); n != 0 {
		t.Errorf("%d reports of progress that nobody asked for", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), answerWithin)
	defer cancel()
	if _, err := s.Request(ctx, "tools/call", json.RawMessage(`{"name":"t1","arguments":{},"_meta":{"progressToken":"p"}}`)); err != nil {
		t.Fatal(err)
	}
	if n := s.notified("notifications/progress"); n < 1 || n > 500 {
		t.Errorf("%d reports of progress for a thousand", n)
	}
	// One, where nothing makes a pause in the burst; a busy machine makes some.
	if n := s.notified("notifications/tools/list_changed") - before; n < 1 || n > len(tools)/5 {
		t.Errorf("%d notifications for one mount of %d tools", n, len(tools))
	}
	s.close()
}

// TestStructuredContent: only a value whose schema has an object at its root is
// announced and sent as structured content.
func TestStructuredContent(t *testing.T) {
	s := open(t)
	s.mount(plugin(
		[3]string{"an_object", "{ type: 'object', properties: { n: { type: 'integer' } } }", "() => ({ n: 1 })"},
		[3]string{"a_map", "{ n: { type: 'integer', required: true } }", "() => ({ n: 2 })"},
		[3]string{"a_text", "{ type: 'string' }", "() => 'x'"},
		[3]string{"a_list", "{ type: 'array' }", "() => [1]"},
		[3]string{"anything", "{ type: 'json' }", "() => ({ n: 1 })"},
		[3]string{"either", "{ oneOf: [{ type: 'object' }, { type: 'null' }] }", "() => ({})"},
		[3]string{"wrong", "{ type: 'object', properties: { n: { type: 'integer' } } }", "() => ({ n: 'x' })"},
		[3]string{"fails", "{ type: 'object' }", "() => { throw new Error('failed') }"}))
	listed := s.list()
	for name, want := range map[string]string{"an_object": `{"n":1}`, "a_map": `{"n":2}`, "a_text": "", "a_list": "", "anything": "", "either": "", "wrong": "", "fails": ""} {
		a := s.call(name, struct{}{})
		if string(a.Structured) != want {
			t.Errorf("%s: structured content %s, want %q", name, a.Structured, want)
		}
		_, announced := listed[name]["outputSchema"]
		if root := name == "an_object" || name == "a_map" || name == "wrong" || name == "fails"; announced != root {
			t.Errorf("%s: output schema announced: %t", name, announced)
		}
		if bad := name == "wrong" || name == "fails"; a.IsError != bad || bad && !strings.HasPrefix(a.Text, "Error: ") {
			t.Errorf("%s: isError %t, %s", name, a.IsError, a.Text)
		}
	}
	s.close()
}

// TestToolsThatNoListCanHold: a tool whose schema is nested too deep or is too
// large stays out of the list, inspect says why, and the others stay in it.
func TestToolsThatNoListCanHold(t *testing.T) {
	s := open(t, "--memory", "512")
	deep := `(() => { let v = { type: 'string' }; for (let i = 0; i < 1200; i++) v = { type: 'array', items: v }; return v })()`
	define := func(name, parameters string) string {
		return `return { name: '` + name + `', apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: '` + name + `', description: 'd', parameters: { a: ` + parameters + ` }, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null })) } }`
	}
	s.mount(define("deep", deep))
	s.mount(define("deep_default", `{ type: 'json', default: `+strings.ReplaceAll(deep, "{ type: 'array', items: v }", "[v]")+` }`))
	for i := range 3 {
		if a := s.call("cordis_mount", map[string]string{"code": define(fmt.Sprintf("large%d", i), `{ type: 'string', description: 'x'.repeat(7 << 20) }`)}); a.IsError && !strings.Contains(a.Text, "message") && !strings.Contains(a.Text, "limit") {
			t.Errorf("large: %.300s", a.Text)
		}
	}
	s.mount(define("ordinary", `{ type: 'string' }`))
	tools := s.list()
	if _, ok := tools["ordinary"]; !ok {
		t.Error("an ordinary tool is not listed beside them")
	}
	if _, ok := tools["deep"]; ok {
		t.Error("the deep tool is listed")
	}
	report := s.call("cordis_inspect", map[string]string{"what": "tools"})
	if !strings.Contains(report.Text, "- deep (dyn-1) (left out of the client's list: its parameters are nested") || report.IsError {
		t.Errorf("inspect: %.600s", report.Text)
	}
	size := 0
	for name, x := range tools {
		for _, member := range x {
			size += len(member)
		}
		if strings.HasPrefix(name, "large") && regexp.MustCompile(`(?m)^- `+name+` .*\(left out`).MatchString(report.Text) {
			t.Errorf("%s is listed, and inspect says that it is not", name)
		}
	}
	if size > limits.MCPFrame {
		t.Errorf("the list has %d bytes", size)
	}
	if a := s.call("deep", struct{}{}); a.IsError {
		t.Errorf("the deep tool cannot be called: %s", a.Text)
	}
	s.close()
}

// TestNothingLeftBehind: HOME, the project and the temporary folder are as they
// were, whatever plugins tried, and standard output had nothing but protocol.
func TestNothingLeftBehind(t *testing.T) {
	program := Program(t)
	root := t.TempDir()
	for _, name := range []string{"home/.config", "project/.git", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "project", "file"), []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		t.Setenv(key, filepath.Join(root, "home"))
	}
	t.Setenv("TMPDIR", filepath.Join(root, "tmp"))
	t.Setenv("DSH_SECRET_FOR_TEST", "secret-of-the-environment")
	t.Chdir(filepath.Join(root, "project"))
	before := snapshot(t, root)

	client, err := Start(t.Context(), program, "mcp", "--vm-timeout", "300ms", "--call-timeout", "900ms", "--services", "kv,log,web") // fs and bash tell where they work
	if err != nil {
		t.Fatal(err)
	}
	s := &session{client, t}
	s.mount("const big = () => { const a = []; for (;;) a.push(new Array(1e5).fill(a.length)) }\n" + plugin(
		[3]string{"spins", "{ type: 'null' }", "() => { for (;;) {} }"}, [3]string{"eats", "{ type: 'null' }", "() => big()"},
		[3]string{"prints", "{ type: 'null' }", `() => { for (let i = 0; i < 500; i++) console.log('\u001b[2J{"jsonrpc":"2.0","id":1,"result":{}}\n[cordis:dyn-99] FORGED\r\u009b31m', i); console.error(new Error('\u001b]0;t\u0007')); return null }`},
		[3]string{"late", "{ type: 'null' }", "() => { Promise.reject(new Error('\\u001b[31mlate\\nFORGED')); return null }"}))
	s.call("cordis_mount", map[string]string{"code": "for (;;) {}"})
	s.call("cordis_mount", map[string]string{"code": "const x: = 1"})
	s.call("cordis_mount", map[string]string{"code": "const x: number = 1; return () => {}"})
	for _, name := range []string{"prints", "late", "spins", "eats"} {
		s.call(name, struct{}{})
	}
	answer := s.call("cordis_inspect", map[string]string{})
	s.close()
	if strings.ContainsAny(s.Stderr(), "\x1b\x07\r\u009b") || strings.Contains(s.Stderr(), "\n[cordis:dyn-99]") || strings.Contains(s.Stderr(), "\nFORGED") {
		t.Errorf("standard error: %.2000q", s.Stderr())
	}
	for _, text := range []string{s.Stderr(), answer.Text} {
		if strings.Contains(text, "secret-of-the-environment") || strings.Contains(text, root) || strings.Contains(text, "goroutine ") {
			t.Errorf("something of ours shows: %.2000s", text)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Errorf("something was left behind: %s", diff)
	}
}

// snapshot is every file below a folder: mode and content.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[path] += " " + string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestAudit: every source is in the file before it runs, whole, with its hash,
// whatever it does; the file is its owner's and only grows.
func TestAudit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	sources := []string{"return () => {}", "throw new Error('x\\n\u2028')", "const broken = ;", "for (;;) {}", "return { name: '\x1b[31m\"\\n' , apply() {} } // \u202e"}
	for range 2 {
		s := open(t, "--audit", file, "--vm-timeout", "100ms")
		for _, source := range sources {
			s.call("cordis_mount", map[string]string{"code": source})
		}
		s.close()
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", info.Mode())
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var line struct {
			Time       time.Time
			ID, Source string
			SHA256     string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		source := sources[n%len(sources)]
		sum := sha256.Sum256([]byte(source))
		if line.Source != source || line.SHA256 != hex.EncodeToString(sum[:]) || line.ID != fmt.Sprintf("dyn-%d", n%len(sources)+1) || time.Since(line.Time).Abs() > time.Hour {
			t.Errorf("line %d: %+v", n, line)
		}
	}
	if n != 2*len(sources) {
		t.Errorf("%d lines, want %d", n, 2*len(sources))
	}
}
