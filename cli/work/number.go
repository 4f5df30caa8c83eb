package work

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// number is a flag that is a whole number from a least one on.
type number struct {
	value, least, most int64  // most 0: any
	rule               string // what it is, for the error: "is a number from 1"
}

var _ pflag.Value = (*number)(nil)

func (n *number) String() string { return strconv.FormatInt(n.value, 10) }

// Type is how help calls the value.
func (n *number) Type() string { return "int" }

// Set implements pflag.Value.
func (n *number) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < n.least || n.most > 0 && v > n.most {
		return errors.New("it " + n.rule)
	}
	n.value = v
	return nil
}
