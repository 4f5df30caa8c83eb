package sandbox_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// forgedVerb is a request that no prelude makes. has is what the host answers;
// "": anything in order.
type forgedVerb struct {
	kind          wire.Kind
	verb, payload string
	run           uint32 // added to the true one
	has           string
}

var deepSchema = strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)

var forgedVerbs = []forgedVerb{
	{kind: wire.HostSync, verb: "no-such", payload: "{}", has: "unknown request"},
	{kind: wire.HostSync, verb: "\x1b[31mFORGED\n" + strings.Repeat("v", 200), payload: "{}", has: "unknown request"},
	{kind: wire.HostSync, verb: "sleep", payload: `{"ms":1}`, has: "unknown request"},
	{kind: wire.HostAsync, verb: "tool", payload: "{}", has: "unknown request"},
	{kind: wire.HostSync, verb: "on", payload: `{"event":"tools/change","fn":1}`, run: 9, has: "can no longer be used"},
	{kind: wire.HostSync, verb: "tool", payload: "", has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: "[]", has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: `{"fn":-1}`, has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: `{"fn":1e99}`, has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"a\n## FORGED","parameters":{},"output":{}}`, has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"cordis_mount","parameters":{},"output":{}}`, has: "already registered by the composition"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"x","output":{}}`, has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"x","parameters":{"a":{"type":"text"}},"output":{}}`, has: "must declare a valid type"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"x","parameters":` + deepSchema + `,"output":{}}`, has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"x","parameters":{},"output":{"type":"string","default":` + deepSchema + `}}`, has: "!"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"x","description":"` + strings.Repeat("d", 1<<17) + `","parameters":{},"output":{}}`, has: "description and title"},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"long_timeout","fn":2,"timeoutMs":1e308,"parameters":{},"output":{}}`},
	{kind: wire.HostSync, verb: "tool", payload: `{"name":"past_timeout","fn":3,"timeoutMs":-5,"parameters":{},"output":{}}`},
	{kind: wire.HostSync, verb: "on", payload: `{"event":"internal/service","fn":1}`, has: "no event"},
	{kind: wire.HostSync, verb: "on", payload: `{"event":"internal/status","fn":1}`, has: "no event"},
	{kind: wire.HostSync, verb: "on", payload: `{"event":"\u001b[31m` + strings.Repeat("e", 1<<17) + `","fn":1}`, has: "no event"},
	{kind: wire.HostSync, verb: "provide", payload: `{"name":"tools","binding":{"kind":"value","value":1}}`, has: "choose another name"},
	{kind: wire.HostSync, verb: "provide", payload: `{"name":"timer","binding":{"kind":"value","value":1}}`, has: "reserved"},
	{kind: wire.HostSync, verb: "provide", payload: `{"name":"forged","binding":{"kind":"host","members":[{"name":"x"}]}}`, has: "unknown kind"},
	{kind: wire.HostSync, verb: "provide", payload: `{"name":"forged","binding":{"kind":"tools"}}`, has: "unknown kind"},
	{kind: wire.HostSync, verb: "provide", payload: `{"name":"a\nFORGED","binding":{"kind":"value"}}`, has: "no usable name"},
	{kind: wire.HostSync, verb: "provide", payload: `{"name":"` + strings.Repeat("n", 1<<17) + `","binding":{"kind":"value"}}`, has: "no usable name"},
	{kind: wire.HostSync, verb: "provide", payload: `{"name":"other","binding":{"kind":"peer","mount":4294967295,"handle":7}}`},
	{kind: wire.HostSync, verb: "timer", payload: `{"kind":"interval","ms":0,"fn":1}`, has: "inject"},
	{kind: wire.HostSync, verb: "timer", payload: `{"kind":"timeout","ms":-1e308,"fn":1}`, has: "inject"},
	{kind: wire.HostAsync, verb: "sleep", payload: `{"ms":1}`, has: "inject"},
	{kind: wire.HostSync, verb: "effect", payload: `{"label":"\u001b[2J\n## FORGED","fn":4294967295}`},
	{kind: wire.HostSync, verb: "effect", payload: `{"label":5}`, has: "!"},
	{kind: wire.HostAsync, verb: "next", payload: `{"call":12345}`, has: "after its event was over"},
	{kind: wire.HostAsync, verb: "next", payload: `{"call":"x"}`, has: "!"},
	{kind: wire.HostAsync, verb: "next", payload: `{"call":-1}`, has: "!"},
	{kind: wire.HostAsync, verb: "next", payload: `{"call":1e400}`, has: "!"},
	{kind: wire.HostAsync, verb: "dispose", payload: `{"effect":99999}`, has: "="},
	{kind: wire.HostAsync, verb: "dispose", payload: `{"effect":"x"}`, has: "!"},
	{kind: wire.HostSync, verb: "get", payload: `{"name":"` + strings.Repeat("n", 1<<17) + `"}`, has: "="},
	{kind: wire.HostSync, verb: "live", payload: `{"name":null}`, has: "=false"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"tools","m":"register","a":[]}`, has: "is not injected"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"add","a":[1,2]}`, has: "is not injected"},
	{kind: wire.HostAsync, verb: "service", payload: `{"s":"\u001b[31mFORGED","m":"x","a":[]}`, has: "is not injected"},
	{kind: wire.Send, verb: "progress", payload: `{"call":1,"text":"` + strings.Repeat("p", 1<<17) + `"}`},
	{kind: wire.Send, verb: "defer", payload: `{"call":1,"message":` + deepSchema + `}`},
	{kind: wire.Send, verb: "conclude", payload: `x`},
	{kind: wire.Send, verb: "fired", payload: `{"effect":1e99}`},
	{kind: wire.Send, verb: "no-such", payload: ``},
	{kind: wire.Console, verb: "\x1b[31mlevel\nFORGED", payload: "\x1b[2J\nFORGED\n[cordis:dyn-99] FORGED\u202e"},
	{kind: wire.Late, payload: `{"message":"\u001b[31mlate\nFORGED","frames":["at \u001b[31mFORGED\n## FORGED"]}`},
}

// forgeries are the requests of the lies that forge some.
var forgeries = map[string][]forgedVerb{"verbs": forgedVerbs, "services": forgedServices}

// loaded is what the fake answers to Load.
func loaded(lie string) string {
	if lie == "services" {
		return `={"name":"fake","inject":[{"name":"forged-service"}]}`
	}
	if strings.HasPrefix(lie, "loaded ") {
		return strings.TrimPrefix(lie, "loaded ")
	}
	if lie == "many_injects" {
		return `={"name":"fake","inject":[` + strings.Repeat(`{"name":"tools"},`, limits.Services+1) + `{"name":"timer"}]}`
	}
	return `={"name":"fake\n## FORGED","inject":[]}`
}

// forge sends the requests, waits for the answers, and registers a tool that
// tells them.
func (f *fakeWorker) forge(apply wire.Frame, verbs []forgedVerb) {
	const dump = 1000
	asked := 1
	for i, v := range verbs {
		a := ask(v.kind, apply, v.verb, v.payload)
		a.ID, a.Run = uint64(i+1), apply.Run+v.run
		f.send(a)
		if v.kind == wire.HostSync || v.kind == wire.HostAsync {
			asked++
		}
	}
	a := ask(wire.HostSync, apply, "tool", `{"fn":1,"name":"dump","parameters":{},"output":{}}`)
	a.ID = dump
	f.send(a)
	for len(f.got) < asked {
		frame, err := f.r.Read()
		if err != nil {
			return
		}
		f.answer("", frame)
	}
}

func forgedRig(t *testing.T, lie string) *selfmodtest.Rig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return selfmodtest.New(t, selfmod.Config{Worker: exe, WorkerArgs: []string{"fake", lie}, VMTimeout: time.Second, CallTimeout: 15 * time.Second})
}

// TestForgedVerbs: a worker that was taken over gets what its mounts could get
// and nothing else; every refusal is an answer, reports stay in order, and
// unmounting leaves nothing.
func TestForgedVerbs(t *testing.T) {
	t.Parallel()
	r := forgedRig(t, "verbs")
	id := r.Mount("whatever")
	res := r.Call("dump", nil)
	r.Works(res, "told")
	var got map[string]string
	if err := json.Unmarshal(res.Value, &got); err != nil {
		t.Fatal(err)
	}
	checkForged(t, forgedVerbs, got)
	for _, report := range []string{r.Inspect("", ""), r.Inspect("temporary", id)} {
		for line := range strings.Lines(report) {
			if strings.HasPrefix(strings.TrimSpace(line), "FORGED") || strings.HasPrefix(line, "## FORGED") || strings.ContainsAny(line, "\x1b\u202e") {
				t.Errorf("a forged line %q in\n%s", line, report)
			}
		}
		if len(report) > limits.ReportAll+1000 {
			t.Errorf("a report of %d bytes", len(report))
		}
	}
	for _, line := range r.Console() {
		if !strings.HasPrefix(line, "[cordis:"+id+"] ") || strings.ContainsAny(line, "\x1b\n") {
			t.Errorf("the console has %q", line)
		}
	}
	if receipt := r.Unmount(id); !strings.Contains(receipt, "3 tools, 1 service") {
		t.Errorf("receipt: %s", receipt)
	}
}

// checkForged holds the answers against what is to be answered.
func checkForged(t *testing.T, verbs []forgedVerb, got map[string]string) {
	t.Helper()
	for i, v := range verbs {
		if v.kind != wire.HostSync && v.kind != wire.HostAsync {
			continue
		}
		answer, ok := got[fmt.Sprint(i+1)]
		if !ok || !strings.Contains(answer, v.has) || v.has != "" && !strings.HasPrefix(v.has, "=") && !strings.HasPrefix(answer, "!") {
			t.Errorf("%s %.80q: answered %.300q, want %q", v.verb, v.payload, answer, v.has)
		}
		if len(answer) > 4*limits.ErrorText {
			t.Errorf("%s %.80q: the answer has %d bytes", v.verb, v.payload, len(answer))
		}
	}
}

// TestForgedLoads: what a worker says of a plugin is checked like all it says.
func TestForgedLoads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, lie, has string }{
		{"nothing", "loaded =", "unreadable"},
		{"list", "loaded =[]", "unreadable"},
		{"inject_text", `loaded ={"name":"x","inject":"tools"}`, "unreadable"},
		{"inject_withheld", `loaded ={"name":"x","inject":[{"name":"a\nFORGED"}]}`, "no name that a service can have"},
		{"inject_empty", `loaded ={"name":"x","inject":[{"name":""}]}`, "no name that a service can have"},
		{"many_injects", "many_injects", "at most 200 services"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := forgedRig(t, tt.lie)
			r.MountFails("whatever", tt.has, "Nothing is mounted")
		})
	}
}
