// Package timer is the service that lets a plugin wait: with it injected, a
// mounted plugin has the timer verbs on its ctx (setTimeout, setInterval,
// timeout, interval, throttle, debounce).
//
// Timers themselves are effects of the fiber that starts them, made by package
// cordis: they end with it, and nothing here needs to be undone. The service
// says that they may be used.
package timer

import (
	"fmt"

	"github.com/dsh-go/dsh/cordis"
)

// Timer marks that timers may be used.
type Timer struct{}

// ForPlugins are timers, as members of ctx itself: ctx.setTimeout(fn, 1000). They
// end with the plugin. ms is at most 2,147,483,647 (24.8 days).
type ForPlugins interface {
	// SetTimeout calls fn once, with args, ms milliseconds from now, and gives a
	// function that stops it. ms is 0 where it is left out.
	//
	//dsh:ts setTimeout(fn: (...args: any[]) => void, ms?: number, ...args: any[]): () => Promise<void>
	SetTimeout()
	// SetInterval calls fn, with args, every ms milliseconds, and gives a function
	// that stops it. While one call runs the next one waits.
	//
	//dsh:ts setInterval(fn: (...args: any[]) => void, ms: number, ...args: any[]): () => Promise<void>
	SetInterval()
	// Timeout gives a promise that resolves in ms milliseconds; with fn it is
	// setTimeout. The promise rejects when the plugin ends.
	//
	//dsh:ts timeout(ms: number): Promise<void>
	//dsh:ts timeout(fn: () => void, ms: number): () => Promise<void>
	Timeout()
	// Interval gives an iterator that yields 1, 2, 3, … every ms milliseconds, for
	// `for await`; a tick that nobody waits for is lost, and leaving the loop stops
	// it. With fn it is setInterval.
	//
	//dsh:ts interval(ms: number): AsyncIterable<number>
	//dsh:ts interval(fn: () => void, ms: number): () => Promise<void>
	Interval()
	// Throttle gives a function that calls fn at once, then at most once in ms
	// milliseconds, the last call at the end of that time unless noTrailing is true.
	// Its dispose() drops the call that waits.
	//
	//dsh:ts throttle<F extends Function>(fn: F, ms: number, noTrailing?: boolean): F & { dispose(): void }
	Throttle()
	// Debounce gives a function that calls fn, with the newest arguments, when it
	// has not been called for ms milliseconds; it returns nothing itself. Its dispose() drops the call that waits.
	//
	//dsh:ts debounce<F extends Function>(fn: F, ms: number): F & { dispose(): void }
	Debounce()
	// ClearTimeout stops the timer that handle stands for: what setTimeout or
	// setInterval gave, which can be called as well.
	//
	//dsh:ts clearTimeout(handle: () => Promise<void>): void
	ClearTimeout()
	// ClearInterval stops the timer of handle, as clearTimeout does.
	//
	//dsh:ts clearInterval(handle: () => Promise<void>): void
	ClearInterval()
}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[*Timer]("timer", cordis.PluginInterface[*Timer, ForPlugins](nil))

// Plugin returns the plugin that provides the service.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "timer",
		Apply: func(c *cordis.Context, _ any) error {
			if _, err := Service.Provide(c, new(Timer)); err != nil {
				return fmt.Errorf("provide timer: %w", err)
			}
			return nil
		},
	}
}
