package log

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mount mounts a plugin called wordCount with the log, as temporary plugin id if
// it is not empty, and gives its fiber and its log.
func mount(t *testing.T, root *cordis.Context, id string) (*cordis.Fiber, ForPlugins) {
	t.Helper()
	f, err := root.Mount(Plugin(), nil)
	if err != nil || f.Await(t.Context()) != nil {
		t.Fatal(err)
	}
	c := root
	if id != "" {
		c = tool.WithMount(root, tool.Mount{Number: 1, ID: id, Plugin: "wordCount"})
	}
	var l ForPlugins
	decl, _ := cordis.LookupService("log")
	f, err = c.Mount(&cordis.Plugin{Name: "wordCount", Inject: cordis.Require("log"), Apply: func(c *cordis.Context, _ any) error {
		v, err := Service.Use(c)
		if err == nil {
			l = decl.Bind(v, c).(ForPlugins)
		}
		return err
	}}, nil)
	if err != nil || f.Await(t.Context()) != nil {
		t.Fatal(err, f.Err())
	}
	return f, l
}

func fields(text string) *lossless.Text {
	t := lossless.Text(text)
	return &t
}

func TestLines(t *testing.T) {
	root := cordis.New()
	_, l := mount(t, root, "dyn-3")
	l.Debug("d", nil)
	l.Info("two\nlines \x1b[31mred\u202e", fields(`{"n":1.0,"s":"a\nb","o":{"x":[]},"mount":"dyn-9"}`))
	l.Warn("w", fields(`7`))
	l.Error("e", fields(`null`))
	var got []string
	for _, m := range root.Runtime().Messages() {
		got = append(got, fmt.Sprintf("%v %s: %s", m.Level, m.Name, m))
	}
	want := []string{
		"DEBUG word-count: d mount=dyn-3",
		"INFO word-count: two\nlines red mount=dyn-3 n=1.0 s=a b o={\"x\":[]} mount=dyn-9",
		"WARN word-count: w mount=dyn-3 value=7",
		"ERROR word-count: e mount=dyn-3 value=null",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	root = cordis.New()
	_, l = mount(t, root, "")
	l.Info("of the program's own", nil)
	if m := root.Runtime().Messages()[0]; m.String() != "of the program's own" || m.Level != slog.LevelInfo {
		t.Errorf("%+v", m)
	}
}

func TestLinesAreBounded(t *testing.T) {
	root := cordis.New()
	_, l := mount(t, root, "dyn-3")
	many := `{"a":"` + strings.Repeat("x", 9000) + `"`
	for i := range 100 {
		many += fmt.Sprintf(`,"%s%d":%d`, strings.Repeat("k", 200), i, i)
	}
	l.Info(strings.Repeat("é", 9000), fields(many+"}"))
	l.Info("big", fields(`"`+strings.Repeat("x", 2<<20)+`"`))
	l.Info("bad", fields(`{`))
	l.Info("deep", fields(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)))
	messages := root.Runtime().Messages()
	m := messages[0]
	if n := utf8.RuneCountInString(m.Text); n > limits.LogText || !strings.Contains(m.Text, "characters cut") {
		t.Error(n, m.Text[len(m.Text)-100:])
	}
	if len(m.Attrs) != 1+limits.LogFields+1 || m.Attrs[len(m.Attrs)-1].String() != "…=81 more fields" {
		t.Error(m.Attrs)
	}
	for _, a := range m.Attrs {
		if utf8.RuneCountInString(a.Value.String()) > limits.LogField || utf8.RuneCountInString(a.Key) > limits.Name {
			t.Error(a)
		}
	}
	if got := messages[1].String(); got != "big mount=dyn-3 fields=(2097154 bytes left out)" {
		t.Error(got)
	}
	if got := messages[2].String(); got != "bad mount=dyn-3 fields=(not JSON)" {
		t.Error(got)
	}
	if got := messages[3].String(); len(got) > 2*limits.LogField {
		t.Error(got)
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := cordis.New()
		f, l := mount(t, root, "dyn-3")
		texts := func() []string {
			var out []string
			for _, m := range root.Runtime().Messages() {
				out = append(out, m.String())
			}
			return out
		}
		for i := range limits.LogBurst + 7 {
			l.Info(fmt.Sprint(i), nil)
		}
		if got := texts(); len(got) != limits.LogBurst {
			t.Fatal(len(got))
		}
		time.Sleep(time.Second)
		l.Info("later", nil)
		got := texts()[limits.LogBurst:]
		if d := cmp.Diff([]string{"dropped 7 lines: more than 50 a second mount=dyn-3", "later mount=dyn-3"}, got); d != "" {
			t.Error(d)
		}
		for range limits.LogRate + 2 { // one of this second has passed
			l.Info("again", nil)
		}
		if got := len(texts()); got != limits.LogBurst+2+limits.LogRate-1 {
			t.Error(got)
		}
		// What was dropped last is told when the plugin ends.
		if _, err := f.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := texts()
		if last := all[len(all)-1]; last != "dropped 3 lines: more than 50 a second mount=dyn-3" {
			t.Error(last)
		}
		l.Info("dropped", nil)
		time.Sleep(time.Minute)
		l.Info("a late line", nil) // of code that goes on after its unmount; it is not lost
		all = texts()
		if d := cmp.Diff([]string{"dropped 1 lines: more than 50 a second mount=dyn-3", "a late line mount=dyn-3"}, all[len(all)-2:]); d != "" {
			t.Error(d)
		}
	})
}

func TestConcurrentLines(t *testing.T) {
	root := cordis.New()
	f, l := mount(t, root, "dyn-3")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				l.Info("x", nil)
			}
		})
	}
	wg.Wait()
	if _, err := f.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	passed, dropped := 0, 0
	for _, m := range root.Runtime().Messages() {
		n := 0
		if _, err := fmt.Sscanf(m.Text, "dropped %d lines", &n); err == nil {
			dropped += n
		} else {
			passed++
		}
	}
	if passed+dropped != 800 || dropped == 0 {
		t.Errorf("%d passed and %d were dropped", passed, dropped)
	}
}

func FuzzFields(f *testing.F) {
	for _, s := range []string{`{"a":"\u001b[2J","\u202e":1}`, `"\ud800"`, `[`, ``, `{"":{}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, a := range shown(lossless.Text(s)) {
			a := a.(slog.Attr)
			if text := a.Key + a.Value.String(); !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x1b\u202e") {
				t.Errorf("%q is shown as %q", s, text)
			}
		}
	})
}

func BenchmarkInfo(b *testing.B) {
	root := cordis.New()
	l := logs{}.For(root).(*lines)
	for b.Loop() {
		l.tokens = limits.LogBurst
		l.Info("message", fields(`{"a":1,"b":"text"}`))
	}
}
