package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// OnHangup calls do when somebody sends SIGHUP, one call after the other, until stop
// is called or ctx ends; stop waits for the call that runs, until its context ends. A
// SIGHUP that came because the terminal has gone ends the program as SIGTERM does.
func OnHangup(ctx context.Context, do func(context.Context)) (stop func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	came := make(chan os.Signal, 1) // one that waits stands for all
	signal.Notify(came, syscall.SIGHUP)
	before, done := hasTerminal(), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-came:
			}
			if before && !hasTerminal() {
				terminate()
				return
			}
			do(ctx)
		}
	}()
	return func(wait context.Context) {
		signal.Stop(came)
		cancel()
		select {
		case <-done:
		case <-wait.Done():
		}
	}
}

// hasTerminal says whether the process has a terminal that it could be hung up from.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close() // it was only asked whether it is there
	return true
}

// terminate ends the program as the first SIGTERM does.
func terminate() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(syscall.SIGTERM) // if it cannot be sent, the terminal's end is the end of all streams
	}
}
