package document

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// splice returns the text with a part of it replaced.
func (e *editor) splice(from, to int, by string) []byte {
	return []byte(e.text[:from] + by + e.text[to:])
}

// lineStart and lineEnd are the ends of the line that an offset is in, without its
// newline.
func (e *editor) lineStart(at int) int { return strings.LastIndexByte(e.text[:at], '\n') + 1 }

func (e *editor) lineEnd(at int) int {
	if i := strings.IndexByte(e.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(e.text)
}

// commented says whether there is a comment between two offsets, outside of the
// texts of a node that is between them.
func (e *editor) commented(from, to int, n *yaml.Node) bool {
	found := false
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, item := range n.Items {
			if n.Kind == yaml.Map {
				walk(n.Keys[i])
			}
			walk(item)
		}
		if n.Kind >= yaml.List {
			return
		}
		found = found || n.Start > from && strings.Contains(e.text[from:n.Start], "#")
		if n.Style == yaml.Literal || n.Style == yaml.Folded {
			found = found || strings.Contains(e.text[n.Start:min(n.End, e.lineEnd(n.Start))], "#")
		}
		from = max(from, n.End)
	}
	if n != nil {
		walk(n)
	}
	return found || from < to && strings.Contains(e.text[from:to], "#")
}

// put writes a member of a map, or an item of a list that is there; nil where it
// cannot.
func (e *editor) put(parent *yaml.Node, name string, v lossless.Value) []byte {
	place := -1
	if parent.Kind == yaml.List {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(parent.Items) {
			return nil
		}
		place = i
	}
	for i, key := range parent.Keys {
		if key.Text == name {
			place = i
		}
	}
	if place >= 0 {
		return e.replace(parent, place, v)
	}
	if parent.Style == yaml.Flow {
		member := inlineKey(name) + ": " + inline(v, yaml.Plain)
		if len(parent.Items) == 0 {
			return e.splice(parent.Start+1, parent.Start+1, member)
		}
		at := parent.Items[e.after(parent, name)].End
		return e.splice(at, at, ", "+member)
	}
	last := e.after(parent, name)
	at := e.lineEnd(parent.Items[last].End)
	column := parent.Keys[0].Start - e.lineStart(parent.Keys[0].Start)
	if last == len(parent.Items)-1 {
		at = e.comments(at, column)
	}
	indent := strings.Repeat(" ", column)
	return e.splice(at, at, "\n"+indent+blockMember(name, v, column))
}

// after returns the member behind which a new one is written: what says whether a row
// is mounted stands right behind what it is.
func (e *editor) after(m *yaml.Node, name string) int {
	last := len(m.Items) - 1
	if name != "disabled" {
		return last
	}
	best := -1
	for i, key := range m.Keys {
		if (key.Text == "name" || key.Text == "id") && m.Items[i].Kind == yaml.String {
			best = i
		}
	}
	if best < 0 {
		return last
	}
	return best
}

// comments goes from the end of a line over the lines below that are comments and
// indented as much as the column or more.
func (e *editor) comments(at, column int) int {
	for at < len(e.text) {
		line := e.text[at+1 : e.lineEnd(at+1)]
		text := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(text, "#") || len(line)-len(text) < column {
			return at
		}
		at += 1 + len(line)
	}
	return at
}

// replace writes another value in the place of one.
func (e *editor) replace(parent *yaml.Node, place int, v lossless.Value) []byte {
	old := parent.Items[place]
	if old.Style == yaml.Missing {
		return e.splice(old.Start, old.Start, " "+inline(v, yaml.Plain))
	}
	if e.commented(old.Start, old.End, old) {
		return nil
	}
	from := old.Start
	if e.lineStart(old.Start) > parent.Start { // is it on a line below its key or dash?
		begin := old.Start
		if parent.Kind == yaml.Map {
			begin = parent.Keys[place].End
		} else if len(parent.Dashes) > 0 {
			begin = parent.Dashes[place]
		}
		if gap := e.text[begin:old.Start]; strings.Contains(gap, "\n") {
			if strings.Contains(gap, "#") {
				return nil
			}
			from = begin + strings.IndexAny(gap, ":-") + 1
		}
	}
	text := inline(v, old.Style)
	if old.Style == yaml.Literal && v.Kind() == lossless.String {
		if block, ok := e.literal(old, v.Str()); ok {
			text = block
		}
	}
	if from < old.Start {
		text = " " + text
	}
	return e.splice(from, old.End, text)
}

// literal writes a text as block text, in the indentation of another.
func (e *editor) literal(old *yaml.Node, s string) (string, bool) {
	body, header := strings.TrimSuffix(s, "\n"), "|"
	if body == s {
		header = "|-"
	}
	first := e.lineEnd(old.Start) + 1
	if body == "" || strings.HasSuffix(body, "\n") || body[0] == ' ' || body[0] == '\n' || first > old.End || strings.ContainsFunc(body, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
		return "", false
	}
	line := strings.TrimLeft(e.text[first:], "\n ")
	at := len(e.text) - len(line)
	indent := strings.Repeat(" ", at-e.lineStart(at))
	var b strings.Builder
	b.WriteString(header)
	for line := range strings.SplitSeq(body, "\n") {
		b.WriteByte('\n')
		if line != "" {
			b.WriteString(indent + line)
		}
	}
	return b.String(), true
}

// drop removes a member of a map.
func (e *editor) drop(m *yaml.Node, name string) []byte {
	place := -1
	for i, key := range m.Keys {
		if key.Text == name {
			place = i
		}
	}
	if place < 0 {
		return nil
	}
	key, item := m.Keys[place], m.Items[place]
	switch {
	case e.commented(key.End, item.End, item):
		return nil
	case len(m.Items) == 1 && m.Style == yaml.Flow:
		return e.between(m.Start+1, m.End-1, item)
	case len(m.Items) == 1:
		return e.splice(key.Start, item.End, "{}")
	case m.Style == yaml.Flow && place == 0:
		return e.between(key.Start, m.Keys[1].Start, item)
	case m.Style == yaml.Flow:
		return e.between(m.Items[place-1].End, item.End, item)
	case place == 0 && strings.TrimLeft(e.text[e.lineStart(key.Start):key.Start], " ") != "":
		return e.between(key.Start, m.Keys[1].Start, item) // behind a dash
	}
	return e.lines(e.lineStart(key.Start), e.lineEnd(item.End))
}

// between removes what is between two offsets, unless a comment is in it.
func (e *editor) between(from, to int, n *yaml.Node) []byte {
	if e.commented(from, to, n) {
		return nil
	}
	return e.splice(from, to, "")
}

// lines removes whole lines, from the beginning of one to the end of another.
func (e *editor) lines(from, to int) []byte {
	if to < len(e.text) {
		to++
	} else if from > 0 {
		from--
	}
	return e.splice(from, to, "")
}

// dropItem removes an item of a list, with the comments above it.
func (e *editor) dropItem(list *yaml.Node, place int) []byte {
	item := list.Items[place]
	switch {
	case list.Style == yaml.Flow && len(list.Items) == 1:
		return e.between(list.Start+1, list.End-1, item)
	case list.Style == yaml.Flow && place == 0:
		return e.between(item.Start, list.Items[1].Start, item)
	case list.Style == yaml.Flow:
		return e.between(list.Items[place-1].End, item.End, item)
	}
	dash := list.Dashes[place]
	from, to := e.lineStart(dash), e.lineEnd(item.End)
	if strings.TrimLeft(e.text[from:dash], " ") != "" {
		return nil // the list begins behind another dash
	}
	to = e.comments(to, dash-from+1)
	above := from
	for above > 0 {
		line := e.text[e.lineStart(above-1) : above-1]
		text := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(text, "#") || len(line)-len(text) != dash-from {
			break
		}
		above = e.lineStart(above - 1)
	}
	if above > 0 || list.Start != e.file.Root.Start {
		from = above
	}
	if len(list.Items) == 1 {
		return e.splice(from, to, strings.Repeat(" ", dash-e.lineStart(dash))+"[]")
	}
	// Of the empty lines before and after one remains.
	if (from == 0 || strings.HasSuffix(e.text[:from], "\n\n")) && strings.HasPrefix(e.text[to:], "\n\n") {
		to++
	}
	return e.lines(from, to)
}

// append adds a row to the list of all rows.
func (e *editor) append(row lossless.Value) ([]byte, bool) {
	root := e.file.Root
	switch {
	case root == nil:
		text := e.text
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return []byte(text + blockRow(row, 0) + "\n"), true
	case root.Style == yaml.Flow && len(root.Items) == 0:
		begin := e.lineStart(root.Start)
		return e.splice(root.Start, root.End, blockRow(row, 0)), begin == root.Start && !e.commented(root.Start, root.End, nil)
	case root.Style == yaml.Flow:
		at := root.Items[len(root.Items)-1].End
		return e.splice(at, at, ", "+inline(row, yaml.Plain)), true
	}
	last := root.Items[len(root.Items)-1]
	dash := root.Dashes[len(root.Dashes)-1]
	column := dash - e.lineStart(dash)
	at := e.comments(e.lineEnd(last.End), column+1)
	lead := "\n" + strings.Repeat(" ", column)
	if n := len(root.Items); n > 1 && strings.Contains(e.text[root.Items[n-2].End:dash], "\n\n") {
		lead = "\n" + lead
	}
	return e.splice(at, at, lead+blockRow(row, column)), true
}

// blockRow writes a row on lines; those but the first are indented.
func blockRow(row lossless.Value, column int) string {
	var lines []string
	for key, v := range row.Members() {
		lines = append(lines, blockMember(key, v, column+2))
	}
	return "- " + strings.Join(lines, "\n"+strings.Repeat(" ", column+2))
}

// blockMember writes a member of a map on lines whose keys are in a column.
func blockMember(name string, v lossless.Value, column int) string {
	text := inline(v, yaml.Plain)
	if v.Kind() != lossless.Object || v.Len() == 0 || len(text) <= 60 {
		return inlineKey(name) + ": " + text
	}
	lines := []string{inlineKey(name) + ":"}
	for key, item := range v.Members() {
		lines = append(lines, strings.Repeat(" ", column+2)+blockMember(key, item, column+2))
	}
	return strings.Join(lines, "\n")
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z_/.][A-Za-z0-9_./+@=-]*( [A-Za-z0-9_./+@=-]+)*$`)
	oldYAML   = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`) // what is no text to some readers
)

// inline writes a value in one line. The style is that of a text that it replaces.
func inline(v lossless.Value, style yaml.Style) string {
	switch v.Kind() {
	case lossless.String:
		return inlineText(v.Str(), style)
	case lossless.Array:
		parts := make([]string, 0, v.Len())
		for _, item := range v.Items() {
			parts = append(parts, inline(item, yaml.Plain))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case lossless.Object:
		parts := make([]string, 0, v.Len())
		for key, item := range v.Members() {
			parts = append(parts, inlineKey(key)+": "+inline(item, yaml.Plain))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return v.String()
}

func inlineKey(key string) string { return inlineText(key, yaml.Plain) }

func inlineText(s string, style yaml.Style) string {
	odd := strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
	if style == yaml.Single && !odd {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	if kind, _, problem := yaml.Resolve(s); style != yaml.Double && kind == yaml.String && problem == "" && plainText.MatchString(s) && !oldYAML.MatchString(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(`\U` + hex(r, 8))
		default:
			b.WriteString(`\u` + hex(r, 4))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hex(r rune, digits int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}
