package project

import (
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
)

// TestSlow: what a start would report is said, and nothing of others.
func TestSlow(t *testing.T) {
	if got := slow(limits.RowsStart); got != "" {
		t.Error(got)
	}
	if got, want := slow(12*time.Second), "takes 12 s; dsh reports plugins that take longer than 10 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
