package log

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/tool"
)

// Log gives each plugin its way to the log.
type Log interface {
	// For is the log of c's plugin: lines bear its name.
	For(c *cordis.Context) ForPlugins
}

// ForPlugins writes lines to the log of the program, which a person reads;
// console.log is for what you want to read yourself with cordis_inspect. A
// message is cut at 2,000 characters; beyond 50 lines a second lines are
// dropped, and their number is logged.
type ForPlugins interface {
	// Debug logs what helps to find a fault. It is usually not shown.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value, such as an Error, is shown as value.
	Debug(message string, fields *lossless.Text)
	// Info logs what is worth knowing.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value, such as an Error, is shown as value.
	Info(message string, fields *lossless.Text)
	// Warn logs what may need attention.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value, such as an Error, is shown as value.
	Warn(message string, fields *lossless.Text)
	// Error logs what went wrong.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value, such as an Error, is shown as value.
	Error(message string, fields *lossless.Text)
}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[Log]("log", cordis.PluginInterface(func(v Log, c *cordis.Context) ForPlugins {
	return v.For(c)
}))

// Plugin returns the plugin that provides the service.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "log",
		Apply: func(c *cordis.Context, _ any) error {
			if _, err := Service.Provide(c, Log(logs{})); err != nil {
				return fmt.Errorf("provide log: %w", err)
			}
			return nil
		},
	}
}

type logs struct{}

// For implements Log.
func (logs) For(c *cordis.Context) ForPlugins {
	l := &lines{c: c, logger: c.Logger(), tokens: limits.LogBurst, filled: time.Now()}
	if m, ok := tool.MountOf(c); ok {
		l.mount = m.ID
	}
	return l
}

// lines is the log of one run of a plugin.
type lines struct {
	c      *cordis.Context
	logger *cordis.Logger
	mount  string // "": no temporary plugin

	mu      sync.Mutex
	tokens  float64 // lines that may pass now
	filled  time.Time
	dropped int
	told    bool // dropped lines are told when the run ends
}

var _ ForPlugins = (*lines)(nil)

// Debug implements ForPlugins.
func (l *lines) Debug(message string, fields *lossless.Text) { l.log(l.logger.Debug, message, fields) }

// Info implements ForPlugins.
func (l *lines) Info(message string, fields *lossless.Text) { l.log(l.logger.Info, message, fields) }

// Warn implements ForPlugins.
func (l *lines) Warn(message string, fields *lossless.Text) { l.log(l.logger.Warn, message, fields) }

// Error implements ForPlugins.
func (l *lines) Error(message string, fields *lossless.Text) { l.log(l.logger.Error, message, fields) }

func (l *lines) log(write func(string, ...any), message string, fields *lossless.Text) {
	if !l.admit() {
		return
	}
	l.tell()
	args := l.attrs()
	if fields != nil {
		args = append(args, shown(*fields)...)
	}
	write(plain.Cut(plain.Terminal(message), limits.LogText), args...)
}

// attrs are what every line bears.
func (l *lines) attrs() []any {
	if l.mount == "" {
		return nil
	}
	return []any{slog.String("mount", l.mount)}
}

// admit tells whether a line may pass now; one that may not is counted.
func (l *lines) admit() bool {
	l.mu.Lock()
	now := time.Now()
	l.tokens = min(limits.LogBurst, l.tokens+limits.LogRate*now.Sub(l.filled).Seconds())
	l.filled = now
	ok := l.tokens >= 1
	first := false
	if ok {
		l.tokens--
	} else {
		l.dropped++
		first, l.told = !l.told, true
	}
	l.mu.Unlock()
	if first {
		// A run that takes no more effects tells what it dropped with the next line.
		_, _ = l.c.Defer("log: count of dropped lines", func(context.Context) error { l.tell(); return nil })
	}
	return ok
}

// tell logs how many lines were dropped since it did so last.
func (l *lines) tell() {
	l.mu.Lock()
	n := l.dropped
	l.dropped = 0
	l.mu.Unlock()
	if n > 0 {
		l.logger.Warn(fmt.Sprintf("dropped %d lines: more than %d a second", n, limits.LogRate), l.attrs()...)
	}
}

// shown gives the attributes that fields are shown as.
func shown(fields lossless.Text) []any {
	if len(fields) > 1<<20 {
		return []any{slog.String("fields", fmt.Sprintf("(%d bytes left out)", len(fields)))}
	}
	v, err := lossless.Parse(fields)
	if err != nil {
		return []any{slog.String("fields", "(not JSON)")}
	}
	if v.Kind() != lossless.Object {
		return []any{slog.String("value", text(v))}
	}
	var args []any
	for key, member := range v.Members() {
		if len(args) == limits.LogFields {
			args = append(args, slog.String("…", fmt.Sprintf("%d more fields", v.Len()-limits.LogFields)))
			break
		}
		args = append(args, slog.String(plain.Name(key), text(member)))
	}
	return args
}

// text shows a value in one line: a string as it is, others as JSON.
func text(v lossless.Value) string {
	if v.Kind() == lossless.String {
		return plain.Line(v.Str(), limits.LogField)
	}
	return plain.Line(string(v.Prefix(8*limits.LogField)), limits.LogField)
}
