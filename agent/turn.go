package agent

import (
	"context"
	"runtime/debug"

	"github.com/dsh-go/dsh/tool"
)

// assembled is what a logged header was made of.
type assembled struct{}

func (a *Agent) drive(ctx context.Context) {}

func (a *Agent) aroundBody(ctx context.Context, x *tool.Exec, next func(context.Context) (*tool.Result, error)) (*tool.Result, error) {
	return next(ctx)
}

// guard runs somebody else's code and makes an error of its panic.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return fn()
}
