package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// durationFlag is a duration within a range; its errors say the range.
type durationFlag struct {
	value    time.Duration
	min, max time.Duration
}

var _ pflag.Value = (*durationFlag)(nil)

func (f *durationFlag) String() string { return f.value.String() }

func (f *durationFlag) Type() string { return "duration" }

func (f *durationFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("write a number with its unit, such as 300ms, 5s or 1m (from %s to %s)", f.min, f.max)
	}
	if d < f.min || d > f.max {
		return fmt.Errorf("it must be from %s to %s", f.min, f.max)
	}
	f.value = d
	return nil
}

// mebibytes is a whole number of MiB within a range.
type mebibytes struct{ value, min, max int }

var _ pflag.Value = (*mebibytes)(nil)

func (f *mebibytes) String() string { return strconv.Itoa(f.value) }

func (f *mebibytes) Type() string { return "MiB" }

func (f *mebibytes) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("write a whole number of MiB without a unit (from %d to %d)", f.min, f.max)
	}
	if n < f.min || n > f.max {
		return fmt.Errorf("it must be from %d to %d MiB", f.min, f.max)
	}
	f.value = n
	return nil
}
