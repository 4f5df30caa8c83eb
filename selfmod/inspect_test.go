package selfmod_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

const notRunning = "\nnot running (loadable services with no live provider): "

// everyService makes each service of the catalog live that is not.
func everyService(t testing.TB, r *selfmodtest.Rig) *cordis.Fiber {
	t.Helper()
	live := map[string]bool{}
	for _, s := range r.Root.Runtime().Services() {
		live[s.Name] = true
	}
	f, err := r.Root.Mount(&cordis.Plugin{Name: "stand-in", Apply: func(c *cordis.Context, _ any) error {
		for _, s := range catalog.Services {
			if live[s.Key] {
				continue
			}
			if _, err := c.Provide(s.Key, nil); err != nil {
				return fmt.Errorf("provide %s: %w", s.Key, err)
			}
		}
		return nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(r.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// headings are the headings of a report.
func headings(report string) (out []string) {
	for line := range strings.Lines(report) {
		if rest, ok := strings.CutPrefix(line, "## "); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return out
}

func TestSectionsInOrder(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	want := []string{"services", "plugins", "tools", "Temporary Plugins", "api", "events"}
	if diff := cmp.Diff(want, headings(r.Inspect("", ""))); diff != "" {
		t.Error(diff)
	}
	for i, what := range selfmod.Sections() {
		if diff := cmp.Diff(want[i:i+1], headings(r.Inspect(what, ""))); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// TestAPIIsWhatIsLive: the section has the signatures of what is provided, the
// types that these mention and no others, and names what is not running.
func TestAPIIsWhatIsLive(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	check := func(report string, live func(string) bool) {
		t.Helper()
		var signatures, absent []string
		for _, s := range catalog.Services {
			if !live(s.Key) {
				absent = append(absent, s.Key)
				if strings.Contains(report, "\n- "+s.Key+" — ") {
					t.Errorf("%s is not live", s.Key)
				}
				continue
			}
			if !strings.Contains(report, "\n- "+s.Key+" — "+s.Summary+"\n") {
				t.Errorf("%s is live", s.Key)
			}
			for _, m := range s.Methods {
				signatures = append(signatures, m.Signature)
				if !strings.Contains(report, "\n    "+strings.ReplaceAll(m.Signature, "\n", "\n    ")+"\n") {
					t.Errorf("no %s", m.Signature)
				}
			}
		}
		mentioned := map[string]bool{}
		for _, typ := range catalog.Closure(signatures...) {
			mentioned[typ.Name] = true
		}
		for _, typ := range catalog.Types {
			cut := strings.Contains(report, " type shapes: ") && strings.Contains(report, typ.Name)
			if shown := strings.Contains(report, "\n    "+typ.Short+"\n"); shown != mentioned[typ.Name] && !cut {
				t.Errorf("type %s: shown %t, mentioned %t", typ.Name, shown, mentioned[typ.Name])
			}
		}
		for _, m := range catalog.Context {
			if !strings.Contains(report, "\n- "+m.Group+" — "+m.Summary) {
				t.Errorf("no %s", m.Group)
			}
		}
		if want := notRunning + strings.Join(absent, ", ") + "\n"; strings.Contains(report, want) != (len(absent) > 0) {
			t.Errorf("not running are %v:\n%s", absent, report)
		}
		if n := utf8.RuneCountInString(report); n > limits.ReportAPI {
			t.Errorf("the section has %d characters", n)
		}
	}
	few := func(key string) bool { return key == "tools" || key == "timer" }
	check(r.Inspect("api", ""), few)
	f := everyService(t, r)
	check(r.Inspect("api", ""), func(string) bool { return true })
	if _, err := f.Dispose(r.Context()); err != nil {
		t.Fatal(err)
	}
	check(r.Inspect("api", ""), few)
}

// TestEventsAreAllThere: whatever is live, with the shapes of what they carry.
func TestEventsAreAllThere(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	report := r.Inspect("events", "")
	for _, e := range catalog.Events {
		if !strings.Contains(report, fmt.Sprintf("\n- %s [%s] — %s\n    %s\n", e.Name, e.Mode, e.Summary, e.Signature)) {
			t.Errorf("no %s", e.Name)
		}
	}
	if !strings.HasSuffix(report, "returning without next() short-circuits the chain.") || utf8.RuneCountInString(report) > limits.ReportAPI {
		t.Errorf("%d characters, %s", utf8.RuneCountInString(report), report)
	}
	if !strings.Contains(report, "\n    Decision { kind: 'allow' | 'ask' | 'deny'; reason?: string }\n") {
		t.Errorf("the shape of a decision is missing:\n%s", report)
	}
}

// TestEveryName: whatever the catalog has can be asked for, with its docs.
func TestEveryName(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	everyService(t, r)
	ask := func(what, name string, has ...string) {
		t.Helper()
		report := r.Works(r.Call("cordis_inspect", map[string]string{"what": what, "name": name}), has...)
		wellFormed(t, report)
		if n := utf8.RuneCountInString(report); n > limits.ReportName {
			t.Errorf("%s %s has %d characters", what, name, n)
		}
		if strings.Contains(report, "characters cut)") {
			t.Errorf("%s %s is cut where nobody chose:\n%s", what, name, report)
		}
	}
	for _, s := range catalog.Services {
		ask("api", s.Key, "- "+s.Key+" — "+s.Summary)
		ask("api", "ctx."+s.Key, "- "+s.Key+" — "+s.Summary)
		for _, m := range s.Methods {
			signature := "\n    " + strings.ReplaceAll(m.Signature, "\n", "\n    ")
			ask("api", s.Key+"."+m.Name, "## api: "+s.Key+"."+m.Name+"\n", signature, m.Summary)
			ask("api", s.Key, signature)
			ask("api", "ctx."+s.Key+"."+m.Name+"(a, b)", signature)
		}
	}
	for _, typ := range catalog.Types {
		for _, m := range typ.Methods {
			ask("api", typ.Name+"."+m.Name, "## api: "+typ.Name+"\n")
		}
		ask("api", typ.Name, strings.ReplaceAll(typ.Declaration, "\n", "\n    "))
	}
	for _, e := range catalog.Events {
		ask("events", e.Name, "- "+e.Name+" ["+e.Mode+"]", "\n    "+e.Signature)
	}
	ask("api", "ctx", "inherited ctx API:", "- ctx.on(")
	ask("api", "ctx.on", "## api: ctx.on\n- ctx.on(")
	ask("api", "ctx.setTimeout", "## api: timer.setTimeout\n", "    setTimeout(")
	ask("api", "ctx.tools.register", "    register(")
}

// TestSeveralNames: a list gives each within its own bound, and says what there
// was no room for; a name that is not known has its error beside the others.
func TestSeveralNames(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	everyService(t, r)
	ask := func(what, name string) string {
		t.Helper()
		report := r.Works(r.Call("cordis_inspect", map[string]string{"what": what, "name": name}))
		wellFormed(t, report)
		if n := utf8.RuneCountInString(report); n > limits.ReportAll {
			t.Errorf("%s has %d characters", name, n)
		}
		return report
	}
	if got, want := headings(ask("api", "kv, bash.run,ctx.on")), []string{"api: kv", "api: bash.run", "api: ctx.on"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	ask("events", "tools/change, fs/write-intent")
	if got, want := headings(ask("api", "kv,, bash.run , kv,")), []string{"api: kv", "api: bash.run"}; !slices.Equal(got, want) {
		t.Errorf("with empty ones and one twice: %q", got)
	}
	long := ask("api", "fs, bash, web, timer, kv, log, tools")
	if !strings.Contains(long, "(cut: there was no room for tools;") || !strings.HasSuffix(long, "ask for the rest in a call of its own)") {
		t.Errorf("it does not say what is missing: %s", long[len(long)-300:])
	}
	shapes := ask("api", "fs.readText, bash.run, fs.stat")
	if n := strings.Count(shapes, "interface Target ") + strings.Count(shapes, "\n    Target {"); n != 1 {
		t.Errorf("Target is shown %d times:\n%s", n, shapes)
	}
	mixed := ask("events", "fs/write-intent, tools/pre-exec, tools/change")
	if got, want := headings(mixed), []string{"event: fs/write-intent", "event: tools/change"}; !slices.Equal(got, want) {
		t.Errorf("beside a name that is not known: %q", got)
	}
	if !strings.Contains(mixed, "\n\nError: no catalogued event named \"tools/pre-exec\"; did you mean \"tools/pre-execute\"?\n\n") {
		t.Errorf("no error of the name that is not known:\n%s", mixed)
	}
	r.Fails(r.Call("cordis_inspect", map[string]string{"what": "api", "name": "no_such, nothing_like_it"}), `no catalogued service named "no_such"`)
	r.Fails(r.Call("cordis_inspect", map[string]string{"what": "api", "name": " , "}), `no catalogued service named`)
	r.Fails(r.Call("cordis_inspect", map[string]string{"what": "api", "name": "fs/read-intent"}), `"fs/read-intent" is an event; ask with what:"events" name:"fs/read-intent"`)
}

// TestMembersOfMounts: a service that a plugin provides has no entry, and its
// members are listed, as the service has them now.
func TestMembersOfMounts(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	id := r.Mount(`return { name: 'maker', apply(ctx) {
  ctx.provide('greeter', { hello(who) {}, add: (a, b) => a + b, count() {}, version: '1' })
  ctx.provide('answer', 42)
} }`)
	f, err := r.Root.Mount(&cordis.Plugin{Name: "go", Apply: func(c *cordis.Context, _ any) error {
		_, err := c.Provide("of-go", 1)
		return err
	}}, nil)
	if err != nil || f.Await(r.Context()) != nil {
		t.Fatal(err)
	}
	api := r.Inspect("api", "")
	for _, want := range []string{
		"\n- answer (provided by maker, no catalog entry)\n- greeter",
		"\n- greeter (provided by maker, no catalog entry)\n    ",
		"\n- of-go (provided by go, not for plugins)\n",
		"hello(who)", "add(a, b)", "count()", "version",
	} {
		if !strings.Contains(api, want) {
			t.Errorf("no %q in\n%s", want, api)
		}
	}
	r.Works(r.Call("cordis_inspect", `{"what":"api","name":"greeter"}`), "## api: greeter\n- greeter (provided by temporary Plugin dyn-1, maker, no catalog entry",
		"\n    function hello(who)", "\n    function add(a, b)", "\n    function count()", "\n    value version")
	one := r.Works(r.Call("cordis_inspect", `{"what":"api","name":"greeter.add"}`), "\n    function add(a, b)")
	if strings.Contains(one, "hello") {
		t.Errorf("more than was asked for:\n%s", one)
	}
	r.Works(r.Call("cordis_inspect", `{"what":"api","name":"answer"}`), "no members")
	r.Fails(r.Call("cordis_inspect", `{"what":"api","name":"greeter.helo"}`), `service "greeter" has no member "helo"; did you mean "hello"?`)
	r.Fails(r.Call("cordis_inspect", `{"what":"api","name":"greetr"}`), `did you mean "greeter"?`)
	evil := r.Mount(`return { name: 'evil', apply(ctx) { ctx.provide('evil', { ['\\n- FORGED']() {}, ['\\u202e\\u001b[2J## FORGED']: 1, ['x'.repeat(5000)]: 2 }) } }`)
	for _, name := range []string{"", "evil"} {
		report := r.Inspect("api", name)
		wellFormed(t, report)
		if !strings.Contains(report, "FORGED") || len(report) > limits.ReportAPI {
			t.Errorf("%d bytes:\n%.2000s", len(report), report)
		}
	}
	r.Unmount(evil)
	r.Unmount(id)
	r.Fails(r.Call("cordis_inspect", `{"what":"api","name":"greeter"}`), `no catalogued service named "greeter"`)
}

func TestNameErrors(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	tests := []struct{ what, name, want string }{
		{"", "fs", `name is valid only with what:"api"`},
		{"", "fs.readText", `; ask with what:"api" name:"fs.readText"`},
		{"services", "tools/change", `; ask with what:"events" name:"tools/change"`},
		{"fs", "", `not "fs"; ask with what:"api" name:"fs"`},
		{"event", "", `not "event"; did you mean "events"?`},
		{"services", "fs", `name is valid only with what:"api"`},
		{"tools", "x", `what:"events" (an event) or what:"temporary"`},
		{"api", "nothing_like_it", `no catalogued service named "nothing_like_it"; what runs: timer, tools`},
		{"events", "nothing_like_it", `no catalogued event named "nothing_like_it"; there are `},
		{"api", "timr", `no catalogued service named "timr"; did you mean "timer"?`},
		{"api", "settimeout", `no catalogued service named "settimeout"; did you mean "ctx.setTimeout"?`},
		{"api", "tools.registr", `service "tools" has no method "registr"; did you mean "register"? (it has register, schemas, get)`},
		{"api", "ctx.emit", `no catalogued service named "ctx.emit"; what runs: `},
		{"events", "tool/pre-execute", `no catalogued event named "tool/pre-execute"; did you mean "tools/pre-execute"?`},
		{"events", "pre-execute", `did you mean "tools/pre-execute"?`},
		{"temporary", "dyn-9", `no temporary Plugin with id "dyn-9"`},
	}
	for _, tt := range tests {
		t.Run(tt.what+"_"+tt.name, func(t *testing.T) {
			r := r.For(t)
			r.Fails(r.Call("cordis_inspect", map[string]string{"what": tt.what, "name": tt.name}), tt.want)
		})
	}
	for _, s := range catalog.Services {
		if s.Key != "tools" && s.Key != "timer" {
			r.Fails(r.Call("cordis_inspect", map[string]string{"what": "api", "name": s.Key}), `catalogued service "`+s.Key+`" is not running`)
		}
	}
}

// TestWholeReportSharesItsRoom: with every service and many plugins, each
// section is there, and what is cut says how to get it.
func TestWholeReportSharesItsRoom(t *testing.T) {
	r := selfmodtest.New(t, selfmod.Config{})
	everyService(t, r)
	whole := r.Inspect("", "")
	if n := utf8.RuneCountInString(whole); n > limits.ReportAll {
		t.Errorf("the report has %d characters", n)
	}
	for _, what := range []string{"services", "plugins", "tools"} { // short ones
		if alone := r.Inspect(what, ""); !strings.Contains(whole, alone) {
			t.Errorf("%s is cut though it is short:\n%s", what, whole)
		}
	}
	for i := range 60 {
		r.Mount(fmt.Sprintf(`return { name: 'plugin-with-a-name-%d', apply(ctx) { for (let i = 0; i < 3; i++) ctx.provide('service_%d_' + i, { f() {}, g() {}, h() {} }) } }`, i, i))
	}
	for _, what := range append(selfmod.Sections(), "") {
		report := r.Inspect(what, "")
		n := utf8.RuneCountInString(report)
		if n > limits.ReportAll || n > limits.ReportAPI && (what == "api" || what == "events") {
			t.Errorf("%q has %d characters", what, n)
		}
		if what == "" {
			if got := headings(report); len(got) != 6 {
				t.Errorf("headings %v", got)
			}
			if cuts := strings.Count(report, "(cut: "); cuts < 3 || strings.Contains(report, "characters cut)") {
				t.Errorf("%d cuts in\n%s", cuts, report)
			}
			for _, s := range catalog.Services {
				if !strings.Contains(report, "\n- "+s.Key) {
					t.Errorf("no word of %s", s.Key)
				}
			}
		}
	}
	if !slices.Contains(headings(r.Inspect("api", "")), "api") {
		t.Error("no api")
	}
}
