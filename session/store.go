package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// Sentinel errors; compare with errors.Is.
var (
	// ErrInvariant marks a payload that a log does not take.
	ErrInvariant = errors.New("not allowed by the session log")
	// ErrClosed says that the session is closed.
	ErrClosed = errors.New("the session is closed")
	// ErrFull says that a limit of a session is reached.
	ErrFull = errors.New("the session is full")
	// ErrID marks an id that is not allowed.
	ErrID = errors.New("not a session id")
	// ErrNotFound says that there is no such session or attachment.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the id is taken.
	ErrExists = errors.New("the session exists already")
	// ErrLocked says that another writer has the session. The error is a *LockedError.
	ErrLocked = errors.New("the session is in use")
	// ErrNewer says that a newer program wrote the session. Nothing was changed.
	ErrNewer = errors.New("written by a newer version")
	// ErrCorrupt says that a log or an attachment is damaged. Nothing was changed.
	ErrCorrupt = errors.New("damaged")
	// ErrBoundary says that a fork was asked for at an event that is not there.
	ErrBoundary = errors.New("no such event")
	// ErrOpenTurn says that a fork was asked for in the middle of a turn.
	ErrOpenTurn = errors.New("inside of a turn")
)

// A LockedError says who has a session that was asked for.
type LockedError struct {
	ID    string
	PID   int       // 0 if it is not known
	Since time.Time // zero if it is not known
}

// Error names the holder.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if !e.Since.IsZero() {
		who += " since " + e.Since.Format(time.RFC3339)
	}
	return fmt.Sprintf("session %s is in use by %s; end that process, or fork the session", e.ID, who)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// FormatVersion is the version of the log's format that this package writes. It
// reads versions 1 to this one.
const FormatVersion = 1

// Meta is what is said about a session when it is created. It never changes.
type Meta struct {
	ID              string
	CreatedAt       int64  // Unix milliseconds; 0 at Create: now
	Cwd             string // absolute, or ""
	ParentSession   string // of a fork or a child
	SeedLength      int64  // how many events a fork took over
	Origin          string // such as subagent
	DelegationDepth int
	AgentPreset     string // the preset at creation; see Log.Preset
}

// idRule has no length: a count in a pattern is paid for by every start of a program.
var idRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckID says whether a text may be a session's id.
func CheckID(id string) error {
	if len(id) > 64 || !idRule.MatchString(id) {
		return fmt.Errorf("%w: %q; an id is 1 to 64 letters, digits, dots, underscores and hyphens, and begins with a letter or a digit", ErrID, plain.Line(plain.Visible(id), limits.Name))
	}
	return nil
}

// Check says what of a Meta no store takes.
func (m Meta) Check() error {
	if err := CheckID(m.ID); err != nil {
		return err
	}
	switch {
	case m.CreatedAt < 0 || m.CreatedAt > maxSafe:
		return fmt.Errorf("session %s: createdAt %d is not a time in Unix milliseconds", m.ID, m.CreatedAt)
	case m.Cwd != "" && !filepath.IsAbs(m.Cwd):
		return fmt.Errorf("session %s: cwd %q is not absolute", m.ID, plain.Line(m.Cwd, limits.SourceLine))
	case m.ParentSession != "" && CheckID(m.ParentSession) != nil:
		return fmt.Errorf("session %s: parentSession: %w", m.ID, CheckID(m.ParentSession))
	case m.SeedLength < 0 || m.DelegationDepth < 0:
		return fmt.Errorf("session %s: seedLength and delegationDepth count from 0", m.ID)
	}
	return nil
}

// A Store keeps sessions. Package sessiontest holds what every store does; its
// methods may be called from any goroutine, and its files from any process.
//
// Errors wrap the sentinels of this package where one fits, and leave what is
// stored as it was.
type Store interface {
	// Create makes a session for writing. Its id must be free: ErrExists. One that
	// is closed before anything was appended leaves nothing behind.
	Create(ctx context.Context, meta Meta) (*Session, error)

	// Open opens a session for writing: one writer at a time, in all processes
	// (*LockedError). It cuts off a last line that was not written whole, repairs
	// an open turn durably (see Log.Repair), and appends session/end-seed, which
	// becomes durable with the next batch. ErrNotFound, ErrNewer, ErrCorrupt.
	Open(ctx context.Context, id string) (*Session, error)

	// Read returns the log as Open would, repaired in memory and closed, and
	// changes nothing. While a writer has the session nothing is repaired: a turn
	// that goes on is open.
	Read(ctx context.Context, id string) (*Log, error)

	// List returns the sessions that the filter lets through, the latest first.
	// Those that cannot be read are listed with Err.
	List(ctx context.Context, filter Filter) ([]Summary, error)

	// Delete removes a session and its attachments: at once and whole for every
	// reader. It must not be open for writing: *LockedError.
	Delete(ctx context.Context, id string) error

	// Fork makes the session newID of the events of another up to and including
	// the seq at, which must not lie inside of a turn (ErrOpenTurn, ErrBoundary).
	// at -1 means all of them. Attachments are carried. Events keep their bytes.
	// The inbox of the fork begins empty. The other session may be in use: an open
	// turn is then repaired in the fork. It may be damaged behind at.
	Fork(ctx context.Context, id string, at int64, newID string) (Meta, error)

	// Export writes the session as JSON lines: the header, the events as Read has
	// them, and the attachments; see Decode.
	Export(ctx context.Context, id string, w io.Writer) error

	// Attachment returns the bytes of an attachment, checked against their hash.
	Attachment(ctx context.Context, id, hash string) ([]byte, error)
}

// A Filter says which sessions List returns.
type Filter struct {
	Cwd   string // only those of this directory, and those of which it cannot be read; "" for all
	Limit int    // at most so many; 0 for all
}

// A Summary is what a list shows of a session.
type Summary struct {
	Meta    Meta
	Title   string
	Updated time.Time // of the last durable write
	Bytes   int64     // of the log
	Err     error     // why it cannot be read; Meta has the id then

	Holder *LockedError // who has it open for writing; nil: nobody, or it cannot be read
}

// Rename sets a session's title as the person's. A session that is in use is
// renamed by its writer, with a Title: *LockedError.
func Rename(ctx context.Context, store Store, id, title string) error {
	s, err := store.Open(ctx, id)
	if err != nil {
		return fmt.Errorf("rename session %s: %w", plain.Name(id), err)
	}
	_, err = s.Append(Title{Title: CleanTitle(title), Source: "user"})
	if err = errors.Join(err, s.Close(ctx)); err != nil {
		return fmt.Errorf("rename session %s: %w", id, err)
	}
	return nil
}

// CleanTitle makes a title of any text: one line, without control characters, at
// most limits.SessionTitle characters.
func CleanTitle(text string) string {
	return strings.TrimSpace(plain.Line(text, limits.SessionTitle))
}

// SortSummaries is for stores: it puts the latest first, equal ones by id.
func SortSummaries(list []Summary) {
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Meta.ID, b.Meta.ID))
	})
}
