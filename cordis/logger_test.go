package cordis

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogger147to152Names(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("fooBar_baz HTTP", nil), nil)
	named := root.Intercept("logger", LoggerConfig{Name: "far"}).Intercept("logger", LoggerConfig{Name: "near"}).Intercept("logger", 7)
	for got, want := range map[string]string{
		root.Logger().Name():            "root",
		root.Logger("explicit").Name():  "explicit",
		named.Logger().Name():           "near",
		named.Logger("explicit").Name(): "explicit",
		f.Context().Logger().Name():     "foo-bar-baz-http",
		mount(t, named, plugin("p", nil), nil).Context().Logger().Name(): "near",
	} {
		wantEqual(t, got, want)
	}
}

func TestLogger153to157Console(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := world(t)
		var out bytes.Buffer
		must(root.Export(Exporter{Level: slog.LevelDebug, Export: NewConsole(&out, 6)}))
		log := root.Logger("app")
		log.Error("failed", "error", errors.Join(errors.New("one"), errors.New("two"))) // 153
		time.Sleep(12 * time.Millisecond)
		log.Debug("100% \x1b[31mred\u202e", slog.Int("n", 1)) // 156
		log.Warn("a\nb")
		log.Info("info")
		want := "[E]    app failed error=one\n           two +0ms\n" +
			"[D]    app 100% [31mred n=1 +12ms\n" +
			"[W]    app a\n           b +0ms\n" +
			"[I]    app info +0ms\n"
		wantEqual(t, out.String(), want)
	})
}

func TestLogger158and159Exporters(t *testing.T) {
	root, tr := world(t), &trace{}
	export := func(name string, level slog.Level) *Handle {
		return must(root.Export(Exporter{Level: level, Levels: map[string]slog.Level{"loud": slog.LevelDebug}, Export: func(m Message) {
			tr.add("%s: %s", name, m.Text)
			if m.Text == "panic" {
				panic(m)
			}
		}}))
	}
	first := export("1", 0)
	export("2", slog.LevelWarn)
	wantEqual(t, labels(root.Fiber()), []string{"ctx.logger.exporter()", "ctx.logger.exporter()"})
	log := root.Logger()
	log.Warn("warn") // 159: shown by default
	log.Debug("debug")
	log.Info("info")
	root.Logger("loud").Debug("loud")
	tr.want(t, "1: warn", "2: warn", "1: info", "1: loud", "2: loud")
	first.Dispose(limit(t)) // 158
	log.Error("panic")
	log.Error("error")
	tr.want(t, "2: panic", "2: error")
	_, err := root.Export(Exporter{})
	wantErr(t, err, ErrArgument)
}

func TestLoggerRing(t *testing.T) {
	root := world(t)
	for range RingSize + 5 {
		root.Logger().Info("x")
	}
	root.Logger().Info(strings.Repeat("é", MaxText))
	all := root.Runtime().Messages()
	if len(all) != RingSize || all[0].SN != 7 || all[RingSize-1].SN != RingSize+6 {
		t.Fatalf("%d messages from %d", len(all), all[0].SN)
	}
	if text := all[RingSize-1].Text; len(text) > MaxText+50 || !strings.HasSuffix(text, "(20480 bytes in all)") {
		t.Fatalf("text of %d bytes", len(text))
	}
}
