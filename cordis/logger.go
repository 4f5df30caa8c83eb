package cordis

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

const (
	// RingSize is how many messages a runtime keeps.
	RingSize = 1000
	// MaxText is the most bytes of a message's text; the rest is cut, and said.
	MaxText = 10240
)

// Message is one log entry. Levels and attributes are those of log/slog; the
// runtime keeps its own ring and exporters because these come and go as effects.
type Message struct {
	SN      uint64 // counts the runtime's messages, from 1
	Time    time.Time
	Level   slog.Level
	Name    string // the logger's
	Text    string
	Attrs   []slog.Attr
	FiberID uint64
}

// String is the text with its attributes.
func (m Message) String() string {
	var b strings.Builder
	b.WriteString(m.Text)
	for _, a := range m.Attrs {
		fmt.Fprintf(&b, " %s", a)
	}
	return b.String()
}

// LoggerConfig names the loggers of a context that it was laid on with
// Intercept("logger", …).
type LoggerConfig struct{ Name string }

// Exporter receives messages, on the goroutine that logs; it must be safe for
// concurrent use. A message that its Export panics on is skipped.
type Exporter struct {
	Level  slog.Level            // the least level; the zero value shows info, warnings and errors
	Levels map[string]slog.Level // instead, by the logger's name
	Export func(Message)
}

// hub is the log of a runtime.
type hub struct {
	mu        sync.Mutex
	sn        uint64
	ring      []Message // at most RingSize; next is the oldest when full
	next      int
	exporters atomic.Pointer[[]*exporter]
}

type exporter struct {
	Exporter
	hub    *hub
	handle Handle
}

var _ inverse = (*exporter)(nil)

func newHub() *hub {
	h := &hub{}
	h.exporters.Store(&[]*exporter{})
	return h
}

// undo takes the exporter out.
func (x *exporter) undo() {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(*x.hub.exporters.Load()), func(o *exporter) bool { return o == x })
	x.hub.exporters.Store(&left)
}

// Export adds an exporter as an effect of the fiber. Without one nothing is
// printed; Runtime.Messages has the last messages in any case.
func (c *Context) Export(e Exporter) (*Handle, error) {
	if e.Export == nil {
		return nil, fmt.Errorf("%w: the exporter has no Export function", ErrArgument)
	}
	e.Levels = maps.Clone(e.Levels)
	f := c.fiber
	x := &exporter{Exporter: e, hub: f.rt.log}
	x.handle = Handle{site: site{f, "ctx.logger.exporter()"}, inverse: x}
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	if err := f.accepts("create effect"); err != nil {
		return nil, err
	}
	f.list(&x.handle)
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	more := append(slices.Clone(*x.hub.exporters.Load()), x)
	x.hub.exporters.Store(&more)
	return &x.handle, nil
}

// Messages gives the last RingSize messages, oldest first.
func (r *Runtime) Messages() []Message {
	h := r.log
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.ring[h.next:], h.ring[:h.next])
}

func (h *hub) log(m Message) {
	m.Time = time.Now()
	if len(m.Text) > MaxText {
		m.Text = strings.ToValidUTF8(m.Text[:MaxText], "") + fmt.Sprintf("… (%d bytes in all)", len(m.Text))
	}
	h.mu.Lock()
	h.sn++
	m.SN = h.sn
	if len(h.ring) < RingSize {
		h.ring = append(h.ring, m)
	} else {
		h.ring[h.next] = m
		h.next = (h.next + 1) % RingSize
	}
	h.mu.Unlock()
	for _, x := range *h.exporters.Load() {
		level, ok := x.Levels[m.Name]
		if !ok {
			level = x.Level
		}
		if m.Level >= level {
			_ = guard(func() error { x.Export(m); return nil })
		}
	}
}

// Logger writes messages under a name. The methods take a text and, like
// log/slog, keys and values or slog.Attr.
type Logger struct {
	name  string
	fiber *Fiber
}

// Logger gives a logger named by the argument, else by the nearest interception
// of "logger" that has a name (see LoggerConfig), else after the fiber, its
// name with hyphens ("fooBar" is foo-bar).
func (c *Context) Logger(name ...string) *Logger {
	l := &Logger{fiber: c.fiber}
	if len(name) > 0 && name[0] != "" {
		l.name = name[0]
		return l
	}
	layers := c.Interceptions("logger")
	for i := len(layers) - 1; i >= 0; i-- {
		if cfg, ok := layers[i].(LoggerConfig); ok && cfg.Name != "" {
			l.name = cfg.Name
			return l
		}
	}
	l.name = hyphenate(c.fiber.name)
	return l
}

func hyphenate(s string) string {
	var b strings.Builder
	prev := '-'
	for _, r := range s {
		if unicode.IsUpper(r) && prev != '-' && !unicode.IsUpper(prev) {
			b.WriteByte('-')
		}
		if r == '_' || r == ' ' {
			r = '-'
		}
		b.WriteRune(unicode.ToLower(r))
		prev = r
	}
	return b.String()
}

// Name gives the logger's name.
func (l *Logger) Name() string { return l.name }

// Error logs at level error.
func (l *Logger) Error(text string, args ...any) { l.log(slog.LevelError, text, args) }

// Warn logs at level warn.
func (l *Logger) Warn(text string, args ...any) { l.log(slog.LevelWarn, text, args) }

// Info logs at level info.
func (l *Logger) Info(text string, args ...any) { l.log(slog.LevelInfo, text, args) }

// Debug logs at level debug.
func (l *Logger) Debug(text string, args ...any) { l.log(slog.LevelDebug, text, args) }

func (l *Logger) log(level slog.Level, text string, args []any) {
	m := Message{Level: level, Name: l.name, Text: text, FiberID: l.fiber.id}
	if len(args) > 0 {
		m.Attrs = slog.Group("", args...).Value.Group()
	}
	l.fiber.rt.log.log(m)
}

// NewConsole makes an exporter's function that writes messages to w, one after
// the other: the level's letter, the name, right-aligned to width, the text with
// its attributes, and the time since the message before. Further lines are
// indented to the text, longer ones than MaxText cut, control characters left out.
func NewConsole(w io.Writer, width int) func(Message) {
	var mu sync.Mutex
	var last time.Time
	return func(m Message) {
		mu.Lock()
		defer mu.Unlock()
		var diff time.Duration
		if !last.IsZero() {
			diff = m.Time.Sub(last)
		}
		last = m.Time
		label := fmt.Sprintf("[%c] %*s ", levelLetter(m.Level), width, printable(m.Name))
		lines := strings.Split(m.String(), "\n")
		for i, l := range lines {
			if l = printable(l); len(l) > MaxText {
				l = strings.ToValidUTF8(l[:MaxText], "") + "…"
			}
			if i > 0 {
				label = strings.Repeat(" ", len([]rune(label)))
			}
			lines[i] = label + l
		}
		fmt.Fprintf(w, "%s +%dms\n", strings.Join(lines, "\n"), diff.Milliseconds())
	}
}

func levelLetter(l slog.Level) byte {
	switch {
	case l >= slog.LevelError:
		return 'E'
	case l >= slog.LevelWarn:
		return 'W'
	case l >= slog.LevelInfo:
		return 'I'
	}
	return 'D'
}

// printable leaves out what could steer a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, s)
}

// PanicError is a panic of a plugin's code.
type PanicError struct {
	Value any
	Stack []byte // where it happened
}

// Error gives the panic's value; the stack is for logs.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap gives the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guard runs user code and turns a panic into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	return fn()
}

// taggedError is a message of its own that matches a sentinel.
type taggedError struct {
	text string
	is   error
}

func tagged(is error, format string, args ...any) error {
	return &taggedError{fmt.Sprintf(format, args...), is}
}

func (e *taggedError) Error() string { return e.text }
func (e *taggedError) Unwrap() error { return e.is }
