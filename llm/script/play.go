package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/internal/regular"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
)

// Adapter plays scripts. It may be used from any goroutine.
type Adapter struct {
	load func(name string) (*Script, error)

	mu     sync.Mutex
	places map[string]*place
	order  []string // the sessions, the oldest first
}

var _ llm.Adapter = (*Adapter)(nil)

// place is where a session is in a script.
type place struct {
	step   int
	failed int // failures of the step that were played
}

// New returns an adapter that plays the one script, whatever the model's name.
func New(s *Script) *Adapter {
	return &Adapter{load: func(string) (*Script, error) { return s, nil }, places: map[string]*place{}}
}

// Files returns an adapter whose models are files: a model's name is the path of
// its script, relative to dir. The file is read for every request.
func Files(dir string) *Adapter {
	return &Adapter{places: map[string]*place{}, load: func(name string) (*Script, error) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		f, _, err := regular.Open(path, os.O_RDONLY, 0)
		if errors.Is(err, regular.ErrIrregular) {
			return nil, fmt.Errorf("read script: %s is %w", plain.Line(path, limits.Preview), regular.ErrIrregular)
		}
		if err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(io.LimitReader(f, limits.LLMScript+1))
		if err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		return Parse(text)
	}}
}

// Models returns none: any script may be named.
func (a *Adapter) Models() []llm.Model { return nil }

// Model reads the script once, so that a bad one is told before a request.
func (a *Adapter) Model(name string) (llm.Model, error) {
	if _, err := a.load(name); err != nil {
		return llm.Model{}, llm.AsFailure(err, llm.CodeUnknownModel)
	}
	return llm.Model{Name: name, Images: true}, nil
}

// Encode returns the request as JSON, all of it.
func (a *Adapter) Encode(r *llm.Request) ([]byte, error) { return r.JSON() }

// Stream plays the next step of the request's session.
func (a *Adapter) Stream(ctx context.Context, r *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		out := llm.NewEmitter(yield)
		s, err := a.load(r.Model)
		if err != nil {
			out.Fail(llm.AsFailure(err, llm.CodeUnknownModel))
			return
		}
		steps := s.Steps
		if r.Purpose != "" {
			steps = s.Purposes[r.Purpose]
		}
		i, fails := a.next(r, steps)
		if i >= len(steps) {
			out.Fail(llm.Fail(llm.CodeScript, "the script is over: it has %d steps%s, and this is request %d", len(steps), forPurpose(r.Purpose), i+1))
			return
		}
		step := &steps[i]
		if fails >= 0 {
			f := step.Failures[fails]
			say(ctx, out, llm.TextBlock, f.Text, step)
			if f.Message == "" {
				f.Message = "scripted"
			}
			out.Fail(&llm.Failure{Code: f.Code, Message: f.Message, Status: f.Status, RetryAfterMs: f.RetryAfterMs})
			return
		}
		if why := step.Expect.unmet(r); why != "" {
			out.Fail(llm.Fail(llm.CodeScript, "step %d%s of the script was sent something else than it expects: %s", i+1, forPurpose(r.Purpose), why))
			return
		}
		play(ctx, out, step, i)
	}
}

func forPurpose(p string) string {
	if p == "" {
		return ""
	}
	return " for " + plain.Name(p)
}

// next takes the place of the request's session: its step, and which of the
// step's failures to play, or -1 for the step itself, which moves the place on.
func (a *Adapter) next(r *llm.Request, steps []Step) (step, failure int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := r.Session + "\x00" + r.Model + "\x00" + r.Purpose
	p := a.places[key]
	if p == nil {
		p = &place{}
		if r.Purpose == "" {
			for _, m := range r.Messages {
				if m.Role == llm.Assistant {
					p.step++
				}
			}
		}
		if len(a.order) >= limits.LLMSessions {
			delete(a.places, a.order[0])
			a.order = a.order[1:]
		}
		a.places[key] = p
		a.order = append(a.order, key)
	}
	if p.step < len(steps) && p.failed < len(steps[p.step].Failures) {
		p.failed++
		return p.step, p.failed - 1
	}
	step = p.step
	p.step, p.failed = p.step+1, 0
	return step, -1
}

func play(ctx context.Context, out *llm.Emitter, step *Step, i int) {
	if !say(ctx, out, llm.ReasoningBlock, step.Reasoning, step) || !say(ctx, out, llm.TextBlock, step.Text, step) {
		return
	}
	for n, c := range step.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", i+1, n+1)
		}
		b := out.Open(llm.CallBlock)
		out.Call(b, c.ID, c.Name, "")
		for piece := range pieces(string(c.Arguments), step.Chunk) {
			if !wait(ctx, out, step) {
				return
			}
			out.Call(b, "", "", piece)
		}
	}
	if u := step.Usage; u != nil {
		out.Usage(llm.Usage(*u))
	}
	reason := llm.FinishReason(step.Finish)
	if reason == "" {
		reason = llm.Stop
	}
	out.Finish(reason, lossless.Value{})
}

// say plays a block, and reports whether anybody still listens.
func say(ctx context.Context, out *llm.Emitter, t llm.BlockType, text string, step *Step) bool {
	if text == "" {
		return !out.Done()
	}
	b := out.Open(t)
	for piece := range pieces(text, step.Chunk) {
		if !wait(ctx, out, step) {
			return false
		}
		out.Append(b, piece)
	}
	return !out.Done()
}

func wait(ctx context.Context, out *llm.Emitter, step *Step) bool {
	err := ctx.Err()
	if step.DelayMs > 0 {
		err = llm.Wait(ctx, time.Duration(step.DelayMs)*time.Millisecond)
	}
	if err != nil {
		out.Fail(llm.AsFailure(err, llm.CodeAborted))
	}
	return !out.Done()
}

// pieces cuts text after every n characters.
func pieces(text string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		if n <= 0 {
			yield(text)
			return
		}
		for rest := []rune(text); len(rest) > 0; rest = rest[min(n, len(rest)):] {
			if !yield(string(rest[:min(n, len(rest))])) {
				return
			}
		}
	}
}
