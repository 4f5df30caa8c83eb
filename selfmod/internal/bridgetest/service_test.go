package bridgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// Shapes is the value of the service.
type Shapes struct {
	mu     sync.Mutex
	log    []string
	kept   []func(ctx context.Context, n int) (string, error)
	block  chan struct{} // what Stubborn waits for
	notify chan string   // of what happens inside
}

// New returns a Shapes.
func New() *Shapes {
	return &Shapes{block: make(chan struct{}), notify: make(chan string, 1000)}
}

// Note notes that something happened.
func (s *Shapes) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	s.log = append(s.log, text)
	s.mu.Unlock()
	select {
	case s.notify <- text:
	default:
	}
}

// Log is what was noted.
func (s *Shapes) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, "\n")
}

// Kept are the functions that plugins gave to Keep.
func (s *Shapes) Kept() []func(ctx context.Context, n int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]func(context.Context, int) (string, error)(nil), s.kept...)
}

// Service is the key.
var Service = cordis.NewService[*Shapes]("shapes", cordis.PluginInterface(func(s *Shapes, c *cordis.Context) ForPlugins {
	s.Note("bound")
	return &forPlugins{s, c}
}))

// Secret is a service that plugins may not inject.
var Secret = cordis.NewService[*Shapes]("shapes-secret")

// Reading is what a policy decides about.
type Reading struct {
	Path string `json:"path"`
	By   string `json:"by"`
}

// ReadIntent is asked before something is read, Observed told afterwards.
var (
	ReadIntent = cordis.NewWaterfall[Reading, tool.Decision]("shapes/read-intent", cordis.ForPlugins())
	Observed   = cordis.NewEmit[Reading]("shapes/observed", cordis.ForPlugins())
)

// Mode is a union.
type Mode string

// Place is a string or an object.
type Place struct {
	Path string `json:"path"`
}

// UnmarshalJSON reads both forms.
func (p *Place) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &p.Path)
	}
	type plain Place
	if err := json.Unmarshal(text, (*plain)(p)); err != nil {
		return err
	}
	if p.Path == "" {
		return errors.New("it has no path")
	}
	return nil
}

// Options are options.
type Options struct {
	MaxBytes *int           `json:"maxBytes,omitempty"`
	Encoding string         `json:"encoding,omitempty"`
	Mode     Mode           `json:"mode,omitempty"`
	Signal   service.Signal `json:"signal,omitzero"`
}

// Item is data.
type Item struct {
	Name  string            `json:"name"`
	Size  int64             `json:"size"`
	Tags  []string          `json:"tags"`
	Attrs map[string]string `json:"attrs,omitempty"`
	Inner *Item             `json:"inner,omitempty"`
	Bytes []byte            `json:"bytes,omitempty"`
}

// Process is an object that stays in the host.
type Process interface {
	Pid() int
	State() string
	Write(ctx context.Context, text string) error
	Lines(ctx context.Context) iter.Seq2[string, error]
	Exited() service.Promise[Item]
	Child() (Process, error)
}

// ForPlugins has every shape.
type ForPlugins interface {
	Add(a, b int) int
	Echo(value lossless.Value) lossless.Value
	Item(item Item) (Item, error)
	Read(ctx context.Context, target Place, options *Options) (string, error)
	Bytes(ctx context.Context, data []byte) ([]byte, error)
	Fails(ctx context.Context, code string) error
	Panics(ctx context.Context) error
	PanicsNow() int
	Nothing(ctx context.Context) error
	Wait(ctx context.Context, name string, options *Options) (string, error)
	Stubborn(ctx context.Context) error
	Count(ctx context.Context, n int, options *Options) iter.Seq2[int, error]
	Chunks(ctx context.Context, n int) iter.Seq2[[]byte, error]
	Each(ctx context.Context, list []string, fn func(ctx context.Context, one Item, at int) (string, error)) ([]string, error)
	EachNow(list []string, fn func(one string) int) int
	Keep(fn func(ctx context.Context, n int) (string, error)) service.Dispose
	Watch(ctx context.Context, path string, fn func(text string)) (service.Dispose, error)
	Start(ctx context.Context, name string) (Process, error)
	Find(ctx context.Context, name string) (Process, error)
	Big(ctx context.Context, n int) (string, error)
	Maybe(ctx context.Context, there bool) (*Item, error)
	None() []string
	HTMLPage() string
	Unsafe() int64
	Either(place *Place, note *lossless.Text) string
}

type forPlugins struct {
	s *Shapes
	c *cordis.Context
}

func (f *forPlugins) Add(a, b int) int                     { return a + b }
func (f *forPlugins) Echo(v lossless.Value) lossless.Value { return v }
func (f *forPlugins) Item(item Item) (Item, error)         { return item, nil }
func (f *forPlugins) None() []string                       { return nil }
func (f *forPlugins) HTMLPage() string                     { return "<b>&</b>" }
func (f *forPlugins) Unsafe() int64                        { return 1<<53 + 2 }
func (f *forPlugins) Either(place *Place, note *lossless.Text) string {
	where, what := "nowhere", "nothing"
	if place != nil {
		where = place.Path
	}
	if note != nil {
		what = string(*note)
	}
	return where + " " + what
}
func (f *forPlugins) PanicsNow() int                { panic("now") }
func (f *forPlugins) Panics(context.Context) error  { panic("a nil map") }
func (f *forPlugins) Nothing(context.Context) error { return nil }
func (f *forPlugins) Big(_ context.Context, n int) (string, error) {
	return strings.Repeat("x", n), nil
}

func (f *forPlugins) Read(ctx context.Context, target Place, o *Options) (string, error) {
	by, _ := tool.MountOf(f.c)
	if err := service.Ask(ctx, f.c, ReadIntent, "SHAPES_DENIED", Reading{Path: target.Path, By: by.ID}); err != nil {
		return "", err
	}
	Observed.Emit(ctx, f.c, Reading{Path: target.Path, By: by.ID})
	if o == nil {
		return target.Path, nil
	}
	most := -1
	if o.MaxBytes != nil {
		most = *o.MaxBytes
	}
	return fmt.Sprintf("%s %d %s %s", target.Path, most, o.Encoding, o.Mode), nil
}

func (f *forPlugins) Bytes(_ context.Context, data []byte) ([]byte, error) {
	out := make([]byte, len(data))
	for i, b := range data {
		out[len(data)-1-i] = b
	}
	return out, nil
}

func (f *forPlugins) Fails(_ context.Context, code string) error {
	return fmt.Errorf("outer: %w", &service.Error{Code: code, Message: "it failed as it was told"})
}

func (f *forPlugins) Wait(ctx context.Context, name string, _ *Options) (string, error) {
	f.s.Note("%s waits", name)
	<-ctx.Done()
	f.s.Note("%s ended: %v", name, context.Cause(ctx))
	return "", ctx.Err()
}

func (f *forPlugins) Stubborn(context.Context) error {
	f.s.Note("stubborn waits")
	<-f.s.block
	return nil
}

func (f *forPlugins) Count(ctx context.Context, n int, _ *Options) iter.Seq2[int, error] {
	f.s.Note("count begins")
	return func(yield func(int, error) bool) {
		defer f.s.Note("count ended")
		for i := range n {
			if ctx.Err() != nil {
				yield(0, ctx.Err())
				return
			}
			if !yield(i, nil) {
				return
			}
		}
		if n == 13 {
			yield(0, &service.Error{Code: "UNLUCKY", Message: "thirteen"})
		}
		if n == 99 {
			panic("ninety-nine")
		}
		if n < 0 {
			<-ctx.Done()
			yield(0, ctx.Err())
		}
	}
}

func (f *forPlugins) Chunks(_ context.Context, n int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range n {
			if !yield([]byte{byte(i), 255}, nil) {
				return
			}
		}
	}
}

func (f *forPlugins) Each(ctx context.Context, list []string, fn func(context.Context, Item, int) (string, error)) ([]string, error) {
	var out []string
	for i, one := range list {
		text, err := fn(ctx, Item{Name: one, Bytes: []byte{1, 2}}, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one, err)
		}
		out = append(out, text)
	}
	return out, nil
}

func (f *forPlugins) EachNow(list []string, fn func(string) int) int {
	sum := 0
	for _, one := range list {
		sum += fn(one)
	}
	return sum
}

func (f *forPlugins) Keep(fn func(context.Context, int) (string, error)) service.Dispose {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.kept = append(f.s.kept, fn)
	return func(context.Context) error {
		f.s.Note("disposed")
		return nil
	}
}

func (f *forPlugins) Watch(_ context.Context, path string, fn func(string)) (service.Dispose, error) {
	h, err := f.c.Defer("watch "+path, func(context.Context) error {
		f.s.Note("watch of %s undone", path)
		return nil
	})
	if err != nil {
		return nil, err
	}
	fn("watching " + path)
	return h.Dispose, nil
}

func (f *forPlugins) Start(_ context.Context, name string) (Process, error) {
	return &process{s: f.s, name: name}, nil
}

func (f *forPlugins) Find(_ context.Context, name string) (Process, error) {
	if name == "" {
		return nil, nil
	}
	return &process{s: f.s, name: name}, nil
}

func (f *forPlugins) Maybe(_ context.Context, there bool) (*Item, error) {
	if there {
		return &Item{Name: "there"}, nil
	}
	return nil, nil
}

type process struct {
	s    *Shapes
	name string

	mu    sync.Mutex
	text  []string
	asked int
}

func (p *process) Pid() int { return 42 }

func (p *process) State() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s after %d writes", p.name, len(p.text))
}

func (p *process) Write(_ context.Context, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = append(p.text, text)
	return nil
}

func (p *process) Lines(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		p.mu.Lock()
		text := p.text
		p.mu.Unlock()
		for _, t := range text {
			if !yield(t, nil) {
				return
			}
		}
	}
}

func (p *process) Exited() service.Promise[Item] {
	return func(context.Context) (Item, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		return Item{Name: p.name, Size: int64(p.asked)}, nil
	}
}

func (p *process) Child() (Process, error) {
	if p.name == "childless" {
		return nil, &service.Error{Code: "NO_CHILD", Message: "it has none"}
	}
	return &process{s: p.s, name: p.name + "'s child"}, nil
}
