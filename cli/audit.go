package cli

import (
	"fmt"
	"os"

	"github.com/dsh-go/dsh/internal/regular"
)

// auditLog appends lines to a file that only its owner may read. The zero
// auditLog drops them.
type auditLog struct{ file *os.File }

// openAudit opens the file for appending, and creates it with mode 0600. An
// empty name is no file.
func openAudit(name string) (*auditLog, error) {
	if name == "" {
		return &auditLog{}, nil
	}
	f, _, err := regular.Open(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open audit file: %w", err)
	}
	return &auditLog{f}, nil
}

// Write appends one line with a single write, so that lines of several
// processes do not mix.
func (a *auditLog) Write(line []byte) (int, error) {
	if a.file == nil {
		return len(line), nil
	}
	n, err := a.file.Write(line)
	if err != nil {
		return n, fmt.Errorf("append to audit file: %w", err)
	}
	return n, nil
}

// Close closes the file.
func (a *auditLog) Close() error {
	if a.file == nil {
		return nil
	}
	if err := a.file.Close(); err != nil {
		return fmt.Errorf("close audit file: %w", err)
	}
	return nil
}
