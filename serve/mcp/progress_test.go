package mcp

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/tool"
)

func number(f float64) *float64 { return &f }

func TestProgressRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var got []string
		p := newProgress(t.Context(), "token", func(_ context.Context, n *sdk.ProgressNotificationParams) error {
			got = append(got, fmt.Sprintf("%v %s %v", time.Since(start), n.Message, n.Progress))
			return nil
		})
		for i := range 10 {
			p.report(tool.Progress{Text: fmt.Sprint(i)})
			synctest.Wait()
			time.Sleep(21 * time.Millisecond)
		}
		p.report(tool.Progress{Text: "last"})
		p.close() // at once
		// The first at once, then the newest every 50 ms, the last one at the end.
		want := []string{"0s 0 0.001", "50ms 2 0.002", "100ms 4 0.003", "150ms 7 0.004", "200ms 9 0.005", "210ms last 0.006"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestProgressSlowClient: a client that does not read blocks neither the call
// nor its reports.
func TestProgressSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sent := 0
		p := newProgress(t.Context(), 1, func(context.Context, *sdk.ProgressNotificationParams) error {
			<-release
			sent++
			return nil
		})
		for range 1000 {
			p.report(tool.Progress{Text: "x"})
			synctest.Wait()
		}
		close(release)
		p.close()
		if sent != 2 {
			t.Errorf("%d sent, want the first and the newest", sent)
		}
	})
}

// TestProgressUnused: a call without reports starts nothing.
func TestProgressUnused(t *testing.T) {
	newProgress(t.Context(), 1, nil).close()
}

// TestProgressCancelled: nothing is sent for a call that was cancelled.
func TestProgressCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := newProgress(ctx, 1, func(context.Context, *sdk.ProgressNotificationParams) error {
		t.Error("sent")
		return nil
	})
	p.report(tool.Progress{Text: "x"})
	p.close()
}

func TestProgressNumbers(t *testing.T) {
	p := newProgress(t.Context(), 1, nil)
	got := []float64{}
	for _, r := range []tool.Progress{
		{Done: number(0), Total: number(10)},
		{Text: "a"},
		{Text: "b"},
		{Done: number(0)}, // does not grow: dropped
		{Done: number(4)},
		{Text: "c"},
		{Done: number(4)}, // does not grow: dropped
		{Done: number(5)},
		{Done: number(1 << 60)},
		{Text: "d"},
	} {
		if params := p.params(r); params != nil {
			got = append(got, params.Progress)
		}
	}
	want := []float64{0, 0.001, 0.002, 4, 4.001, 5, 1 << 60, 1<<60 + 256}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
