package permission

import (
	"context"

	"github.com/dsh-go/dsh/tool"
)

// A Kind is what a question is about.
type Kind string

// The kinds of acts. Read is never asked about.
const (
	KindRead    Kind = "read"
	KindEdit    Kind = "edit"
	KindExecute Kind = "execute" // a command line, or a call of a mounted tool
	KindFetch   Kind = "fetch"   // a page, or a search
	KindMount   Kind = "mount"   // cordis_mount
)

// A Question is put to a person. Its texts are bounded and hold what a model or a
// plugin wrote: strip control characters before a terminal gets them.
type Question struct {
	// ID is unique in the session; approval/asked and approval/decided carry it.
	ID string
	// Tool is the tool call within which it happens; "" for none, such as a timer's.
	Tool string
	// CallID is that call's id.
	CallID string
	// Mount says which temporary plugin acts, "dyn-3 (name)"; "" for the model.
	Mount string
	Kind  Kind
	// Summary is one line: "run git push", "edit src/main.go".
	Summary string
	// Detail is everything a person needs to decide, on several lines: the whole
	// command and its folder, the code and what it injects. It may be "".
	Detail string
	// Card shows the act where there is one to show, such as the diff of an edit.
	Card *tool.Card
	// Remember is what "for this session" would allow, as a rule and in words; "" for
	// what cannot be remembered.
	Remember string
}

// An Answer is what a person said.
type Answer struct {
	Allow bool
	// Remember allows the like of it for the rest of the session. It counts only with
	// Allow, and where the question has a Remember.
	Remember bool
	// Stop denies and ends the turn.
	Stop bool
	// Reason is told to the model with a denial; optional.
	Reason string
}

// An Asker puts a question to a person and waits for the answer or the end of ctx.
// It is called once at a time for each binding. An error denies.
type Asker func(ctx context.Context, q Question) (Answer, error)
