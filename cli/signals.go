package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// exitAtOnce is the status after a second signal where the system has none for it:
// what shells say of SIGINT.
const exitAtOnce = 130

// untilSignal gives a context that ends with the first SIGINT or SIGTERM. The second
// one ends the program as if nobody had caught it, after parting was called. The
// function that is returned ends both.
func untilSignal(parting func()) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	came := make(chan os.Signal, 2)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range came {
			if ctx.Err() == nil {
				cancel()
				continue
			}
			parting()
			endBy(s)
		}
	}()
	return ctx, func() {
		signal.Stop(came) // nothing is sent any more when it returns
		close(came)
		cancel()
	}
}

// endBy ends the program by a signal, so that a shell sees that.
func endBy(s os.Signal) {
	signal.Reset(s)
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(s) == nil {
		time.Sleep(time.Second) // it comes meanwhile
	}
	os.Exit(exitAtOnce)
}
