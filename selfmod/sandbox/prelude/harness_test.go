package prelude_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
)

// compiled is bytecode, made once for all tests: the whole prelude, its core, and
// the parts.
type compiled struct {
	whole, core []byte
	parts       map[string][]byte
}

var bytecode = sync.OnceValue(func() compiled {
	vm, err := qjs.New(qjs.Options{})
	if err != nil {
		panic(err)
	}
	defer vm.Close()
	compile := func(source string) []byte {
		code, err := vm.CompileStripped(source, prelude.Filename)
		if err != nil {
			panic(err)
		}
		return code
	}
	c := compiled{whole: compile(prelude.Source()), core: compile(prelude.Core()), parts: map[string][]byte{}}
	for _, p := range prelude.Parts() {
		c.parts[p.Name] = compile(p.Source)
	}
	return c
})

// asked is one thing that a machine asked of the worker.
type asked struct {
	op   string
	args []string
}

func (a asked) String() string { return a.op + " " + strings.Join(a.args, " ") }

// machine is a VM with the prelude and a scripted host.
type machine struct {
	t      testing.TB
	vm     *qjs.VM
	number int
	world  map[int]*machine // other machines, by number

	log     []asked           // all but console
	console []string          // "level: text"
	sync    map[string]string // verb → value text; "verb json" first
	effect  int
	asyncID int
	done    map[string]string // call → value text
	calls   int
	pending map[string][2]string // "mount:promise" → … waiter's machine and id
	refuse  string               // value text for the next registration
	parts   []string             // which were read
	settles [][2]string          // answers of peers that wait for the machine to be free
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	skipSlow(t)
	vm, err := qjs.New(qjs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vm.Close)
	m := &machine{t: t, vm: vm, number: 1, sync: map[string]string{}, done: map[string]string{}, pending: map[string][2]string{}}
	vm.SetHost(m.host)
	if err := vm.EvalBytecode(bytecode().core); err != nil {
		t.Fatal(err)
	}
	return m
}

// newWorld returns n machines, numbered from 1, that reach each other as peers.
func newWorld(t testing.TB, n int) []*machine {
	t.Helper()
	world := map[int]*machine{}
	all := make([]*machine, n)
	for i := range all {
		all[i] = newMachine(t)
		all[i].number, all[i].world = i+1, world
		world[i+1] = all[i]
	}
	return all
}

func (m *machine) host(op string, args []string) (string, bool, error) {
	if op == "console" {
		m.console = append(m.console, args[0]+": "+args[1])
		return "", false, nil
	}
	if op != "peer" && op != "peerdone" && op != "part" {
		m.log = append(m.log, asked{op, args})
	}
	switch op {
	case "part":
		return "", false, m.part(args[0])
	case "sync":
		return m.answer(args[2], args[3]), true, nil
	case "async":
		m.asyncID++
		return strconv.Itoa(m.asyncID), true, nil
	case "done":
		m.done[args[0]] = args[1]
	case "check":
		if text, ok := m.sync["check"]; ok {
			return text, true, nil
		}
		return "=", true, nil
	case "peer":
		return m.peer(args[0], args[1], args[2])
	case "peerdone":
		key := fmt.Sprintf("%d:%s", m.number, args[0])
		to := m.pending[key]
		number, _ := strconv.Atoi(to[0])
		other := m.world[number]
		if other == nil {
			return "", false, fmt.Errorf("peerdone %q of nobody", key)
		}
		other.settles = append(other.settles, [2]string{to[1], args[1]})
	}
	return "", false, nil
}

// part runs a part in the machine, as the worker does.
func (m *machine) part(name string) error {
	code, ok := bytecode().parts[name]
	if !ok {
		return fmt.Errorf("there is no part %q", name)
	}
	m.parts = append(m.parts, name)
	v, err := m.vm.RunBytecode(code)
	if err != nil {
		return err
	}
	defer v.Free()
	_, _, err = m.vm.Call("part", name, v)
	return err
}

func (m *machine) answer(verb, js string) string {
	if text, ok := m.sync[verb+" "+js]; ok {
		return text
	}
	if text, ok := m.sync[verb]; ok {
		return text
	}
	switch verb {
	case "tool", "on", "provide", "timer", "effect":
		if m.refuse != "" {
			text := m.refuse
			m.refuse = ""
			return text
		}
		m.effect++
		return fmt.Sprintf(`={"effect":%d}`, m.effect)
	case "live":
		return "=false"
	}
	return "="
}

// peer passes a request on to another machine, as the worker does.
func (m *machine) peer(mount, request, args string) (string, bool, error) {
	number, _ := strconv.Atoi(mount)
	other := m.world[number]
	if other == nil {
		return `!{"message":"there is no such mount","code":"NO_MOUNT"}`, true, nil
	}
	var r struct{ Run int }
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return "", false, err
	}
	text := other.dispatch("peer", fmt.Sprintf("%d:%d", m.number, r.Run), request, args)
	if id, ok := strings.CutPrefix(text, "~"); ok {
		m.asyncID++
		mine := strconv.Itoa(m.asyncID)
		other.pending[fmt.Sprintf("%d:%s", number, id)] = [2]string{strconv.Itoa(m.number), mine}
		other.drain()
		return "~" + mine, true, nil
	}
	other.drain()
	return text, true, nil
}

func (m *machine) dispatch(args ...any) string {
	m.t.Helper()
	text, _, err := m.vm.Call(args...)
	if err != nil {
		m.t.Fatalf("dispatch %v: %v", args[0], err)
	}
	return text
}

func (m *machine) drain() {
	m.t.Helper()
	if _, _, err := m.vm.RunJobs(1 << 20); err != nil {
		m.t.Fatalf("drain: %v", err)
	}
}

// settleAll delivers what peers have answered, in every machine of the world.
func (m *machine) settleAll() {
	m.t.Helper()
	for more := true; more; {
		more = false
		for _, one := range m.world {
			if len(one.settles) > 0 {
				next := one.settles[0]
				one.settles, more = one.settles[1:], true
				one.settle(next[0], next[1])
			}
		}
	}
}

func (m *machine) settle(id, text string) {
	m.t.Helper()
	m.dispatch("settle", id, text)
	m.drain()
}

// call dispatches a call and returns its value text; "~" while it is pending.
func (m *machine) call(op string, args ...any) string {
	m.t.Helper()
	m.calls++
	id := strconv.Itoa(m.calls)
	text := m.dispatch(append([]any{op, id}, args...)...)
	m.drain()
	m.settleAll()
	if text != "~" {
		return text
	}
	if done, ok := m.done[id]; ok {
		return done
	}
	return text
}

// load loads the body of a plugin and returns the value text.
func (m *machine) load(body string) string {
	m.t.Helper()
	code, err := m.vm.Compile("(async function(ctx,harness,console){\n"+body+"\n})", "cordis-mount-dyn-1.js")
	if err != nil {
		m.t.Fatal(err)
	}
	fn, err := m.vm.RunBytecode(code)
	if err != nil {
		m.t.Fatal(err)
	}
	defer fn.Free()
	return m.call("load", fn)
}

// run loads a plugin and applies it as run 1; both must succeed.
func (m *machine) run(body, bindings string) {
	m.t.Helper()
	if text := m.load(body); text[0] != '=' {
		m.t.Fatalf("load: %s", text)
	}
	if text := m.call("apply", "1", bindings); text != "=" {
		m.t.Fatalf("apply: %s", text)
	}
}

// eval runs an expression in a fresh machine's body and returns the name that the
// plugin takes from it: a quick way to look at a value as text.
func (m *machine) eval(expression string) string {
	m.t.Helper()
	text := m.load("const __v = await (async () => (" + expression + "))(); return { name: String(__v), apply() {} }")
	if text[0] != '=' {
		return text
	}
	var loaded struct{ Name string }
	if err := json.Unmarshal([]byte(text[1:]), &loaded); err != nil {
		m.t.Fatalf("%s: %v", text, err)
	}
	return loaded.Name
}

// asks returns what was asked with an op, or an op and a verb.
func (m *machine) asks(op, verb string) []asked {
	var found []asked
	for _, a := range m.log {
		if a.op == op && (verb == "" || len(a.args) > 2 && a.args[2] == verb) {
			found = append(found, a)
		}
	}
	return found
}

// skipSlow skips what runs so much JavaScript that the race detector, under which
// the engine is 40 times slower, would make it take minutes. Nothing here runs on
// more than one goroutine; TestWhole remains.
func skipSlow(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("too slow under the race detector")
	}
}

// message returns the message of a failure's value text.
func message(t testing.TB, text string) string {
	t.Helper()
	if !strings.HasPrefix(text, "!") {
		t.Fatalf("no failure: %s", text)
	}
	var f struct{ Message string }
	if err := json.Unmarshal([]byte(text[1:]), &f); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f.Message
}
