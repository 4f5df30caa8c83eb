package command

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// Duration is a duration within a range; its errors say the range.
type Duration struct {
	Value    time.Duration
	Min, Max time.Duration
}

var _ pflag.Value = (*Duration)(nil)

func (f *Duration) String() string { return f.Value.String() }

// Type is how help calls the value.
func (f *Duration) Type() string { return "duration" }

// Set implements pflag.Value.
func (f *Duration) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("write a number with its unit, such as 300ms, 5s or 1m (from %s to %s)", f.Min, f.Max)
	}
	if d < f.Min || d > f.Max {
		return fmt.Errorf("it must be from %s to %s", f.Min, f.Max)
	}
	f.Value = d
	return nil
}

// Mebibytes is a whole number of MiB within a range.
type Mebibytes struct{ Value, Min, Max int }

var _ pflag.Value = (*Mebibytes)(nil)

func (f *Mebibytes) String() string { return strconv.Itoa(f.Value) }

// Type is how help calls the value.
func (f *Mebibytes) Type() string { return "MiB" }

// Set implements pflag.Value.
func (f *Mebibytes) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("write a whole number of MiB without a unit (from %d to %d)", f.Min, f.Max)
	}
	if n < f.Min || n > f.Max {
		return fmt.Errorf("it must be from %d to %d MiB", f.Min, f.Max)
	}
	f.Value = n
	return nil
}
