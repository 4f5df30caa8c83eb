package llm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dsh-go/dsh/limits"
)

// Retry is the policy by which a request is sent again in the same step. The
// zero Retry never retries; DefaultRetry is what a provider has unless configured.
type Retry struct {
	Max    int           // retries of one request
	Base   time.Duration // before the first one; doubled for each further one
	Limit  time.Duration // the longest wait; a provider that asks for more ends it
	Jitter float64       // the part of a wait that is random: 0.1 is ±10%
	Always bool          // retry for ever, except what cannot succeed; longer requests to wait are cut to Limit
	Rand   func() float64
}

// DefaultRetry returns the normal policy: limits.LLMRetries retries, from
// limits.LLMRetryBase doubling to limits.LLMRetryMax, a tenth of it random.
func DefaultRetry() Retry {
	return Retry{Max: limits.LLMRetries, Base: limits.LLMRetryBase, Limit: limits.LLMRetryMax, Jitter: 0.1}
}

// Next says whether to send the request again after it failed for the n-th time
// (from 1), and how long to wait before. The provider's own wait is honoured up
// to Limit, without jitter below it.
func (r Retry) Next(n int, f *Failure) (time.Duration, bool) {
	if f == nil || !f.Retryable() || (n > r.Max && !r.Always) {
		return 0, false
	}
	wait := r.Base
	for i := 1; i < n && wait < r.Limit; i++ {
		wait *= 2
	}
	wait = min(wait, r.Limit)
	random := rand.Float64
	if r.Rand != nil {
		random = r.Rand
	}
	wait += time.Duration(float64(wait) * r.Jitter * (2*random() - 1))
	if asked, ok := f.RetryAfter(); ok {
		if asked > r.Limit && !r.Always {
			return 0, false
		}
		wait = max(wait, min(asked, r.Limit))
	}
	return min(wait, r.Limit), true
}

// Last returns the failure that ends a run: where the provider asks to wait longer
// than Limit its message says so; f itself is not changed.
func (r Retry) Last(f *Failure) *Failure {
	if f == nil || !f.Retryable() || r.Always {
		return f
	}
	asked, ok := f.RetryAfter()
	if !ok || asked <= r.Limit {
		return f
	}
	last := *f
	last.Message += fmt.Sprintf("; the provider asks to wait %d s, more than this program waits (%d s)", seconds(asked), seconds(r.Limit))
	return &last
}

// seconds rounds up: what is told to be long enough is.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Run calls try until it succeeds (nil), fails for good, or the policy gives up,
// and returns the last failure. before is called ahead of each wait with the
// number of failures so far, the failure and the wait; what it returns ends the
// run. failed is how often the request has failed already, for a run that is
// continued from a log. A cancelled ctx ends a wait at once.
func (r Retry) Run(ctx context.Context, failed int, try func() *Failure, before func(n int, f *Failure, wait time.Duration) error) *Failure {
	for n := failed + 1; ; n++ {
		f := try()
		if f == nil {
			return nil
		}
		wait, again := r.Next(n, f)
		if !again {
			return r.Last(f)
		}
		if before != nil {
			if err := before(n, f, wait); err != nil {
				return AsFailure(err, CodeInternal)
			}
		}
		if err := Wait(ctx, wait); err != nil {
			return AsFailure(err, CodeAborted)
		}
	}
}

// Wait waits for d, or until ctx is done, whose error it returns.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
