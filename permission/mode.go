package permission

import (
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
)

// A Mode says what happens without being asked about. The package comment has the
// table.
type Mode string

// The modes.
const (
	Ask      Mode = "ask"       // whatever changes something is asked about
	AutoEdit Mode = "auto-edit" // files within the roots may be changed
	Full     Mode = "full"      // nothing is asked about
	ReadOnly Mode = "read-only" // nothing may be changed
)

// Modes are all modes, in the order in which they are shown.
func Modes() []Mode { return []Mode{Ask, AutoEdit, Full, ReadOnly} }

// ParseMode reads a mode; the error names those that there are.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes() {
		if s == string(m) {
			return m, nil
		}
	}
	return "", fmt.Errorf("%q is no permission mode: choose ask, auto-edit, full or read-only", plain.Name(s))
}
