package bridge

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/catalog"
)

// How far an iterator runs ahead of who reads it.
const (
	aheadValues = 16
	aheadBytes  = 256 << 10
)

// Iteration is an iterator that runs, a little ahead of its reader.
type Iteration struct {
	m      *Member
	c      Caller
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when the iterator has returned
	some   chan struct{} // has one when there is something to read
	room   chan struct{} // has one when something was read

	mu      sync.Mutex
	values  [][]byte
	bytes   int
	special bool
	err     error // behind the values
	over    bool  // nothing follows the values
}

// Iterate begins an iteration. The method is called on a goroutine of the
// iteration's own, with a context that ends with it. stop, when it is called with
// the reason, or the end of ctx ends it.
func (o *Object) Iterate(ctx context.Context, m *Member, args lossless.Value, c Caller) (*Iteration, error) {
	if m.Kind != catalog.KindIterator {
		return nil, fmt.Errorf("%s: it is no iterator", m.who())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	in, err := m.arguments(ctx, args, c)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	it := &Iteration{
		m: m, c: c, ctx: ctx, cancel: cancel,
		ended: make(chan struct{}), some: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	go it.run(o.value, in)
	return it, nil
}

// run is the iteration's goroutine.
func (it *Iteration) run(value reflect.Value, in []reflect.Value) {
	defer close(it.ended)
	err := it.produce(value, in)
	it.mu.Lock()
	it.err, it.over = err, true
	it.mu.Unlock()
	signal(it.some)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (it *Iteration) produce(value reflect.Value, in []reflect.Value) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Name: "Error", Code: CodePanic, Stack: debug.Stack(), Message: fmt.Sprintf("%s failed in the host: %s",
				it.m.who(), plain.Line(fmt.Sprint(v), limits.SourceLine))}
		}
	}()
	out, err := it.m.invoke(it.ctx, value, in)
	if err != nil || out[0].IsNil() {
		return err
	}
	yield := reflect.MakeFunc(out[0].Type().In(0), func(args []reflect.Value) []reflect.Value {
		e, _ := args[1].Interface().(error)
		if e != nil {
			err = it.m.failure(it.ctx, e)
			return []reflect.Value{reflect.ValueOf(false)}
		}
		var more bool
		more, err = it.put(args[0])
		return []reflect.Value{reflect.ValueOf(more)}
	})
	out[0].Call([]reflect.Value{yield})
	if err == nil && it.ctx.Err() != nil {
		err = it.m.failure(it.ctx, it.ctx.Err())
	}
	return err
}

// put adds a value and waits until there is room for another.
func (it *Iteration) put(v reflect.Value) (more bool, err error) {
	if it.ctx.Err() != nil {
		return false, it.m.failure(it.ctx, it.ctx.Err())
	}
	w := writer{caller: it.c, objects: it.m.Objects}
	b, err := w.value(nil, v)
	if err == nil && len(b) > limits.Result {
		_, err = w.bounded(b)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", it.m.who(), err)
	}
	it.mu.Lock()
	it.values = append(it.values, b)
	it.bytes += len(b)
	it.special = it.special || w.special
	full := it.full()
	it.mu.Unlock()
	signal(it.some)
	for full {
		select {
		case <-it.room:
		case <-it.ctx.Done():
			return false, it.m.failure(it.ctx, it.ctx.Err())
		}
		it.mu.Lock()
		full = it.full()
		it.mu.Unlock()
	}
	return true, nil
}

func (it *Iteration) full() bool { return len(it.values) >= aheadValues || it.bytes >= aheadBytes }

// Next waits for values and gives those that are there, {"v":[…]} in the form of a
// result; with "d":true, which done says too, nothing follows. An error of the
// iterator comes behind its values.
func (it *Iteration) Next(ctx context.Context) (batch []byte, done bool, err error) {
	for yielded := false; ; {
		it.mu.Lock()
		if it.over || len(it.values) > 0 && (yielded || it.full()) {
			break
		}
		some := len(it.values) > 0
		it.mu.Unlock()
		if some { // there may be more at once, and a round trip costs more
			runtime.Gosched()
			yielded = true
			continue
		}
		select {
		case <-it.some:
		case <-ctx.Done():
			return nil, false, it.m.failure(ctx, ctx.Err())
		}
	}
	values, special, over, err := it.values, it.special, it.over, it.err
	it.values, it.bytes, it.special = nil, 0, false
	it.mu.Unlock()
	signal(it.room)
	if len(values) == 0 && err != nil {
		return nil, true, err
	}
	if over && err != nil {
		over = false // it comes with the next
		signal(it.some)
	}
	b := []byte(`*{"v":[`)
	for n, v := range values {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	b = append(b, ']')
	if over {
		b = append(b, `,"d":true`...)
	}
	b = append(b, '}')
	if !special {
		b = b[1:]
	}
	return b, over, nil
}

// Stop ends the iteration and waits until the iterator has returned, at most until
// ctx ends.
func (it *Iteration) Stop(ctx context.Context, why error) error {
	it.cancel(why)
	select {
	case <-it.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended is closed when the iterator has returned.
func (it *Iteration) Ended() <-chan struct{} { return it.ended }
