package killtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/internal/casetest"
	"github.com/dsh-go/dsh/llm/openai"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/jsonl"
)

// TestMain adopts what killed programs leave, so that it is seen.
func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	status := m.Run()
	casetest.Clean()
	os.Exit(status)
}

// work is what the model does: a command, files and a command at a time, a plugin,
// its tool, and a slow command.
var work = [][]call{
	{{"bash", `{"command":"echo one > one.txt; cat one.txt"}`}},
	{{"write", `{"file_path":"two.txt","content":"two\n"}`}, {"bash", `{"command":"sleep 0.03; ls"}`}, {"read", `{"file_path":"one.txt"}`}},
	{{"cordis_mount", `{"code":"return { name: 'greeter', inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'greet', description: 'greets', parameters: {}, output: { schema: { type: 'string' }, render: (_a, v) => [{ type: 'text', text: v }] }, async execute() { return 'hello' } })) } }"}`}},
	{{"greet", `{}`}},
	{{"bash", `{"command":"sleep 100 & sleep 0.05; echo five; kill %1"}`}},
}

// A life is one run of the program.
type life struct {
	killed  bool
	printed []string // its whole lines
	stderr  string
	status  int
}

// A place is a folder, a home, a model and a session.
type place struct {
	t       *testing.T
	dir     string
	home    string
	model   *model
	before  []string // stands before the program on its command line
	printed []string // by all lives
}

func newPlace(t *testing.T) *place {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: filepath.Join(dir, "work"), home: filepath.Join(dir, "home"), model: newModel(t, time.Millisecond, work)}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// stop says when a life is to end: at the n-th of where, or after a time.
type stop struct {
	where string // request, chunk, answered, line; "" for after; never
	n     int
	after time.Duration
}

func (s stop) String() string {
	if s.where == "" {
		return s.after.String()
	}
	return s.where + "_" + strconv.Itoa(s.n)
}

// live runs the program until it ends or is killed.
func (p *place) live(s stop, args ...string) life {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	line := append(slices.Clone(p.before), casetest.Program(p.t), "run", "--json", "--self", "--permission", "full",
		"--model", "openai/m", "--cwd", p.dir, "--session", "s")
	line = append(line, args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "DSH_HOME=" + p.home, "OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + p.model.URL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	var l life
	var mu sync.Mutex
	counts := map[string]int{}
	reached := func(where string) {
		mu.Lock()
		defer mu.Unlock()
		if counts[where]++; !l.killed && s.where == where && counts[where] == s.n {
			l.killed = true
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	p.model.at(reached)
	if s.where == "" {
		kill := time.AfterFunc(s.after, func() {
			mu.Lock()
			defer mu.Unlock()
			l.killed = true
			_ = cmd.Process.Kill()
		})
		defer kill.Stop()
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // what it did not finish it did not say
		}
		l.printed = append(l.printed, strings.TrimSuffix(line, "\n"))
		reached("line")
	}
	_ = cmd.Wait() // the status tells
	mu.Lock()
	defer mu.Unlock()
	l.stderr, l.status = stderr.String(), cmd.ProcessState.ExitCode()
	l.killed = l.status == -1
	p.printed = append(p.printed, l.printed...)
	return l
}

// finish resumes until the work has come to its end, and looks at what there is.
func (p *place) finish() {
	p.t.Helper()
	if _, err := os.Stat(filepath.Join(p.home, "sessions", "s")); err != nil {
		if len(p.printed) > 0 {
			p.t.Fatalf("printed, and there is no session: %q", p.printed)
		}
		p.succeed(p.live(stop{where: "never"}, "do all of it"))
	} else {
		p.succeed(p.live(stop{where: "never"}, "--resume", "go on"))
	}
	p.check()
}

func (p *place) succeed(l life) {
	p.t.Helper()
	if l.status != 0 {
		p.t.Fatalf("status %d: %s\n%s", l.status, l.stderr, strings.Join(l.printed[max(0, len(l.printed)-5):], "\n"))
	}
}

// log is the file of the session.
func (p *place) log() string { return filepath.Join(p.home, "sessions", "s", "log.jsonl") }

// check compares what was printed, what was sent, and what is in the log.
func (p *place) check() {
	p.t.Helper()
	text, err := os.ReadFile(p.log())
	if err != nil {
		p.t.Fatal(err)
	}
	log := map[int64]string{}
	asked, calls, results := map[string]bool{}, map[string]int{}, map[string]int{}
	last := ""
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[1:] {
		e := p.event(line)
		log[e.Seq] = line
		switch e.Type {
		case session.TypeCall:
			calls[e.Data.CallID]++
		case session.TypeResult:
			for _, b := range e.Data.Message.Content {
				results[b.ToolCallID]++
			}
		case session.TypeAssistant:
			last = line
			for _, b := range e.Data.Message.Content {
				if b.Type == "tool-call" {
					asked[b.ID] = true
				}
			}
		}
	}
	for _, line := range p.printed {
		if e := p.event(line); log[e.Seq] != line {
			p.t.Errorf("printed: %s\nin the log: %s", line, log[e.Seq])
		}
	}
	for id := range asked {
		if calls[id] > 1 || results[id] != 1 {
			p.t.Errorf("call %s: begun %d times, %d results", id, calls[id], results[id])
		}
	}
	if len(calls) > len(asked) || len(results) != len(asked) {
		p.t.Errorf("%d calls were asked for, %d begun, %d have results", len(asked), len(calls), len(results))
	}
	if !strings.Contains(last, theEnd) {
		p.t.Errorf("the last answer is %s", last)
	}
	bodies, refused := p.model.sent()
	p.rebuild(bodies)
	for _, why := range refused {
		p.t.Errorf("the model refused a history: %s", why)
	}
}

// rebuild makes every request that the model was ever sent again from the log that
// is left: a beginning of it gives the same bytes.
func (p *place) rebuild(bodies [][]byte) {
	p.t.Helper()
	store, err := jsonl.New(filepath.Join(p.home, "sessions"))
	if err != nil {
		p.t.Fatal(err)
	}
	log, err := store.Read(p.t.Context(), "s")
	if err != nil {
		p.t.Fatal(err)
	}
	adapter, err := openai.New(openai.Options{BaseURL: p.model.URL})
	if err != nil {
		p.t.Fatal(err)
	}
	var made [][]byte
	events := log.Events(0)
	adds := func(i int) bool { // what a request is made of, up to it
		return i < len(events) && slices.Contains([]session.Type{session.TypeUser, session.TypeRequestHeader, session.TypeRequestContext}, events[i].Type)
	}
	for i := range events {
		if !adds(i) && events[i].Type != session.TypeStepStart || adds(i+1) {
			continue
		}
		r, err := log.RequestAt(int64(i + 1))
		if err != nil {
			continue // before the first header
		}
		q, err := agent.RequestOf(r, "s")
		if err != nil {
			p.t.Fatal(err)
		}
		body, err := adapter.Encode(&q)
		if err != nil {
			p.t.Fatal(err)
		}
		made = append(made, body)
	}
	for i, body := range bodies {
		if !slices.ContainsFunc(made, func(b []byte) bool { return bytes.Equal(b, body) }) {
			p.t.Errorf("request %d is not what the log says: %s", i, body)
		}
	}
}

// event is what is looked at of a line.
type event struct {
	Type session.Type
	Seq  int64
	Data struct {
		CallID  string
		Message struct {
			Content []struct{ Type, ID, ToolCallID string }
		}
	}
}

func (p *place) event(line string) (e event) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		p.t.Fatalf("%v: %q", err, line)
	}
	return e
}

// nobodyIsLeft waits for the end of all that was adopted.
func nobodyIsLeft(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := children()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left:\n%s", strings.Join(left, "\n"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// children are the living processes whose parent is this one.
func children() (list []string) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		panic(err)
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(os.Getpid()) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			list = append(list, filepath.Dir(name)+" "+f[0]+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return list
}

// seed is always the same, unless DSH_KILL_SEED names another.
func seed() (uint64, uint64) {
	n, err := strconv.ParseUint(os.Getenv("DSH_KILL_SEED"), 10, 64)
	if err != nil {
		n = 4
	}
	return n, 9
}

// whole is how many of each boundary a life has that nobody ends.
func whole(t *testing.T) (counts map[string]int, took time.Duration) {
	t.Helper()
	p := newPlace(t)
	began := time.Now()
	l := p.live(stop{where: "never"}, "do all of it")
	took = time.Since(began)
	p.succeed(l)
	p.check()
	if p.model.requests() != len(work)+1 {
		t.Errorf("%d requests for %d rounds", p.model.requests(), len(work))
	}
	return map[string]int{"request": p.model.requests(), "answered": p.model.requests(), "line": len(l.printed)}, took
}

// TestKill kills the program at its boundaries and at random times, and has what is
// left taken up.
func TestKill(t *testing.T) {
	counts, took := whole(t)
	t.Logf("%v in %v", counts, took)
	var stops []stop
	every := map[string]int{"request": 1, "answered": 2, "line": 14}
	times := 5
	if testing.Short() {
		every, times = map[string]int{"request": 4, "answered": 4, "line": 60}, 1
	}
	for where, step := range every {
		for n := 1; n <= counts[where]; n += step {
			stops = append(stops, stop{where: where, n: n})
		}
	}
	random := rand.New(rand.NewPCG(seed()))
	for range times {
		stops = append(stops, stop{after: time.Duration(random.Int64N(int64(took)))}, stop{where: "chunk", n: 1 + random.IntN(60)})
	}
	t.Run("at", func(t *testing.T) {
		for _, s := range stops {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				if first := p.live(s, "do all of it"); !first.killed {
					t.Logf("it had ended: status %d", first.status)
				}
				p.finish()
			})
		}
	})
	nobodyIsLeft(t)
}

// TestKillAgain kills whoever takes it up, too.
func TestKillAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(seed()))
	lives := 5
	if testing.Short() {
		lives = 2
	}
	p := newPlace(t)
	for i := range lives {
		args := []string{"do all of it"}
		if i > 0 {
			args = []string{"--resume", fmt.Sprintf("go on, %d", i)}
		}
		p.live(stop{where: "chunk", n: 5 + random.IntN(30)}, args...)
	}
	p.finish()
	nobodyIsLeft(t)
}
