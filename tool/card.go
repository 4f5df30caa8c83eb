package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// Kind says what a tool does to the world; a view picks icons by it.
type Kind string

// The kinds of tools.
const (
	KindRead    Kind = "read"
	KindEdit    Kind = "edit"
	KindDelete  Kind = "delete"
	KindMove    Kind = "move"
	KindSearch  Kind = "search"
	KindExecute Kind = "execute"
	KindFetch   Kind = "fetch"
	KindOther   Kind = "other"
)

const kindList = "read, edit, delete, move, search, execute, fetch, other"

func (k Kind) valid() bool {
	return k != "" && slices.Contains(strings.Split(kindList, ", "), string(k))
}

// A Card is how a person sees a call or its result: exactly one of the fields
// is set. Its JSON is that field's object with a member "type" that names it.
// Generic, Terminal and Diff serve calls and results; Search, Read and Web
// serve results.
type Card struct {
	Generic  *GenericCard
	Terminal *TerminalCard
	Diff     *DiffCard
	Search   *SearchCard
	Read     *ReadCard
	Web      *WebCard
}

// GenericCard shows any call or result. A call's has a title.
type GenericCard struct {
	Title     string        `json:"title,omitempty"`
	Kind      Kind          `json:"kind,omitempty"`
	RawInput  lossless.Text `json:"rawInput,omitempty"`
	Content   []Block       `json:"content,omitempty"`
	Locations []Location    `json:"locations,omitempty"`
}

// Location is a place in a file; Line counts from 1, 0 is the whole file.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// TerminalCard shows a command. Title, Description and Cwd belong to a call;
// Output, ExitCode and Signal to a result.
type TerminalCard struct {
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description,omitempty"`
	Cwd         string  `json:"cwd,omitempty"`
	Output      *string `json:"output,omitempty"`
	ExitCode    *int    `json:"exitCode,omitempty"`
	Signal      string  `json:"signal,omitempty"`
}

// DiffCard shows changes of files.
type DiffCard struct {
	Title     string     `json:"title,omitempty"`
	Diffs     []FileDiff `json:"diffs"`
	Locations []Location `json:"locations,omitempty"`
}

// FileDiff is the change of one file; a nil OldText is a new file.
type FileDiff struct {
	Path    string  `json:"path"`
	OldText *string `json:"oldText"`
	NewText string  `json:"newText"`
}

// The shapes of a SearchCard.
const (
	ShapeMatches = "matches"
	ShapePaths   = "paths"
)

// SearchCard shows what a search found: Matches or Paths, as Shape says.
// Total counts what there was before Truncated cut it.
type SearchCard struct {
	Shape     string   `json:"shape"`
	Truncated bool     `json:"truncated"`
	Total     int      `json:"total"`
	Matches   []Match  `json:"matches,omitempty"`
	Paths     []string `json:"paths,omitempty"`
}

// Match is one line that a search found; Line counts from 1.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// ReadCard shows lines of a file; Offset is the number of the first of them.
type ReadCard struct {
	Path       string     `json:"path"`
	Offset     int        `json:"offset"`
	Lines      []ReadLine `json:"lines"`
	TotalLines int        `json:"totalLines"`
	Lang       string     `json:"lang,omitempty"`
	Content    []Block    `json:"content,omitempty"`
}

// ReadLine is one line of a file; Number counts from 1.
type ReadLine struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// The kinds of a WebCard.
const (
	WebSearch = "search"
	WebFetch  = "fetch"
)

// WebCard shows a search of the web or a fetched page, as Kind says.
type WebCard struct {
	Kind    string      `json:"kind"`
	Query   string      `json:"query,omitempty"`
	URL     string      `json:"url,omitempty"`
	Status  int         `json:"status,omitempty"`
	Title   string      `json:"title,omitempty"`
	Results []WebResult `json:"results,omitempty"`
	Content []Block     `json:"content,omitempty"`
}

// WebResult is one hit of a search of the web.
type WebResult struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
}

// The bounds of a card: its JSON in bytes, and the items of each of its lists.
const (
	maxCardBytes = limits.Result
	maxCardItems = 10_000
)

// variant is one of the card types.
type variant interface{ validate() error }

var (
	_ variant = (*GenericCard)(nil)
	_ variant = (*TerminalCard)(nil)
	_ variant = (*DiffCard)(nil)
	_ variant = (*SearchCard)(nil)
	_ variant = (*ReadCard)(nil)
	_ variant = (*WebCard)(nil)

	_ json.Marshaler   = Card{}
	_ json.Unmarshaler = (*Card)(nil)
)

const cardTypes = "generic, terminal, diff, search, read, web"

// one returns the card's type and the field that is set.
func (c Card) one() (string, variant, error) {
	var name string
	var set variant
	n := 0
	pick := func(isSet bool, as string, v variant) {
		if isSet {
			name, set, n = as, v, n+1
		}
	}
	pick(c.Generic != nil, "generic", c.Generic)
	pick(c.Terminal != nil, "terminal", c.Terminal)
	pick(c.Diff != nil, "diff", c.Diff)
	pick(c.Search != nil, "search", c.Search)
	pick(c.Read != nil, "read", c.Read)
	pick(c.Web != nil, "web", c.Web)
	if n != 1 {
		return "", nil, fmt.Errorf("a card has exactly one of %s, not %d", cardTypes, n)
	}
	return name, set, nil
}

// Type returns the card's type, "" for a card that is not valid.
func (c Card) Type() string {
	name, _, _ := c.one()
	return name
}

// Validate says what is wrong with a card.
func (c Card) Validate() error {
	name, v, err := c.one()
	if err == nil {
		err = v.validate()
	}
	if err != nil {
		if name != "" {
			return fmt.Errorf("%s card: %w", name, err)
		}
		return err
	}
	return nil
}

// MarshalJSON returns {"type": …} with the members of the card.
func (c Card) MarshalJSON() ([]byte, error) {
	name, v, err := c.one()
	if err != nil {
		return nil, err
	}
	body, err := lossless.From(v)
	if err != nil {
		return nil, fmt.Errorf("write %s card: %w", name, err)
	}
	members := []lossless.Member{lossless.M("type", lossless.Str(name))}
	for key, value := range body.Members() {
		members = append(members, lossless.M(key, value))
	}
	return lossless.Obj(members...).Encode(), nil
}

// UnmarshalJSON reads a card of a known type and validates it. Members that
// the type does not have are ignored.
func (c *Card) UnmarshalJSON(text []byte) error {
	if len(text) > maxCardBytes {
		return fmt.Errorf("read card: %d bytes, more than the limit of %d", len(text), maxCardBytes)
	}
	var tag struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(text, &tag); err != nil {
		return fmt.Errorf("read card: %w", err)
	}
	var next Card
	var into any
	switch tag.Type {
	case "generic":
		next.Generic = &GenericCard{}
		into = next.Generic
	case "terminal":
		next.Terminal = &TerminalCard{}
		into = next.Terminal
	case "diff":
		next.Diff = &DiffCard{}
		into = next.Diff
	case "search":
		next.Search = &SearchCard{}
		into = next.Search
	case "read":
		next.Read = &ReadCard{}
		into = next.Read
	case "web":
		next.Web = &WebCard{}
		into = next.Web
	default:
		return fmt.Errorf("read card: type %s is not one of %s", quote(tag.Type), cardTypes)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s card: %w", tag.Type, err)
	}
	if err := next.Validate(); err != nil {
		return fmt.Errorf("read card: %w", err)
	}
	*c = next
	return nil
}

func (g *GenericCard) validate() error {
	if g.Kind != "" && !g.Kind.valid() {
		return fmt.Errorf("kind %s is not one of %s", quote(string(g.Kind)), kindList)
	}
	if g.RawInput != nil {
		if len(g.RawInput) > maxCardBytes {
			return fmt.Errorf("rawInput has %d bytes, more than the limit of %d", len(g.RawInput), maxCardBytes)
		}
		if _, err := lossless.Parse(g.RawInput); err != nil {
			return fmt.Errorf("rawInput: %w", err)
		}
	}
	return errors.Join(checkBlocks(g.Content), checkLocations(g.Locations), checkText("title", g.Title))
}

func (t *TerminalCard) validate() error {
	output := ""
	if t.Output != nil {
		output = *t.Output
	}
	return checkText("text", t.Title, t.Description, t.Cwd, t.Signal, output)
}

func (d *DiffCard) validate() error {
	if len(d.Diffs) == 0 {
		return errors.New("diffs is empty")
	}
	if err := checkCount("diffs", len(d.Diffs)); err != nil {
		return err
	}
	texts := []string{d.Title}
	for i, f := range d.Diffs {
		if f.Path == "" {
			return fmt.Errorf("diffs[%d].path is empty", i)
		}
		texts = append(texts, f.Path, f.NewText)
		if f.OldText != nil {
			texts = append(texts, *f.OldText)
		}
	}
	return errors.Join(checkText("text", texts...), checkLocations(d.Locations))
}

func (s *SearchCard) validate() error {
	switch {
	case s.Shape != ShapeMatches && s.Shape != ShapePaths:
		return fmt.Errorf("shape %s is neither matches nor paths", quote(s.Shape))
	case s.Shape == ShapeMatches && len(s.Paths) > 0:
		return errors.New("a search of shape matches has paths")
	case s.Shape == ShapePaths && len(s.Matches) > 0:
		return errors.New("a search of shape paths has matches")
	case s.Total < len(s.Paths)+len(s.Matches):
		return fmt.Errorf("total %d is less than the %d that are listed", s.Total, len(s.Paths)+len(s.Matches))
	}
	texts := slices.Clone(s.Paths)
	for i, m := range s.Matches {
		if m.Path == "" || m.Line < 1 {
			return fmt.Errorf("matches[%d] needs a path and a line from 1", i)
		}
		texts = append(texts, m.Path, m.Text)
	}
	return errors.Join(checkCount("matches", len(s.Matches)), checkCount("paths", len(s.Paths)), checkText("text", texts...))
}

func (r *ReadCard) validate() error {
	switch {
	case r.Path == "":
		return errors.New("path is empty")
	case r.Offset < 0 || r.TotalLines < 0:
		return errors.New("offset and totalLines are not negative")
	}
	texts := []string{r.Path, r.Lang}
	for i, l := range r.Lines {
		if l.Number < 1 {
			return fmt.Errorf("lines[%d].number counts from 1, not %d", i, l.Number)
		}
		texts = append(texts, l.Text)
	}
	return errors.Join(checkCount("lines", len(r.Lines)), checkBlocks(r.Content), checkText("text", texts...))
}

func (w *WebCard) validate() error {
	if w.Kind != WebSearch && w.Kind != WebFetch {
		return fmt.Errorf("kind %s is neither search nor fetch", quote(w.Kind))
	}
	texts := []string{w.Query, w.URL, w.Title}
	for _, r := range w.Results {
		texts = append(texts, r.Title, r.URL, r.Snippet)
	}
	return errors.Join(checkCount("results", len(w.Results)), checkBlocks(w.Content), checkText("text", texts...))
}

func checkLocations(l []Location) error {
	for i, at := range l {
		if at.Path == "" || at.Line < 0 {
			return fmt.Errorf("locations[%d] needs a path, and a line from 1 or none", i)
		}
	}
	return checkCount("locations", len(l))
}

func checkCount(what string, n int) error {
	if n > maxCardItems {
		return fmt.Errorf("%s has %d items, more than the limit of %d", what, n, maxCardItems)
	}
	return nil
}

func checkText(what string, texts ...string) error {
	size := 0
	for _, t := range texts {
		size += len(t)
	}
	if size > maxCardBytes {
		return fmt.Errorf("%s has %d bytes, more than the limit of %d", what, size, maxCardBytes)
	}
	return nil
}
