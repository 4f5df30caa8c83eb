package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

// TestModelAsks: the rate refills, what runs is bounded for each plugin, and plugins
// that have gone are forgotten.
func TestModelAsks(t *testing.T) {
	var k asks
	now := time.Unix(1_000_000, 0)
	a, b := owner{name: "dyn-1"}, owner{name: "dyn-2"}
	one := func(who owner, want string) func() {
		t.Helper()
		done, err := k.model(who, now)
		if got := service.CodeOf(err); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		return done
	}
	var under []func()
	for range limits.ModelAsks {
		under = append(under, one(a, ""))
	}
	one(a, CodeBusy)
	one(b, "")()
	for _, done := range under {
		done()
	}
	for range limits.ModelAskRate - limits.ModelAsks {
		one(a, "")()
	}
	one(a, CodeTooFast)
	now = now.Add(time.Minute / limits.ModelAskRate)
	one(a, "")()
	one(a, CodeTooFast)
	now = now.Add(time.Hour)
	for range limits.ModelAskRate {
		one(a, "")()
	}
	one(a, CodeTooFast)
	running := one(b, "")
	for i := range 10 {
		now = now.Add(2 * time.Minute)
		one(owner{name: fmt.Sprint("dyn-", i+3)}, "")()
	}
	if _, kept := k.models["dyn-2"]; len(k.models) != 2 || !kept {
		t.Errorf("%d plugins are remembered", len(k.models))
	}
	running()
}
