package selfmod

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/tool"
)

// section is one part of a report.
type section struct {
	what, heading string
	lines         []string
	empty         string   // instead of lines
	notes         []string // below the lines, never cut
}

// text writes the section in at most max characters. Lines that do not fit are
// left out from the end, and the section says how many.
func (s section) text(max int) string {
	var b strings.Builder
	b.WriteString("## " + s.heading)
	room := max - b.Len()
	for _, n := range s.notes {
		room -= len(n) + 1
	}
	lines := s.lines
	if len(lines) == 0 && s.empty != "" {
		lines = []string{s.empty}
	}
	const tail = 120 // for the line that says what is missing
	left := 0
	for _, line := range lines {
		left += len(line) + 1
	}
	for i, line := range lines {
		need := len(line) + 1
		if left > room && room < need+tail {
			fmt.Fprintf(&b, "\n(cut: %d more of %d; cordis_inspect what:%q shows this section alone, up to %d characters)", len(lines)-i, len(lines), s.what, limits.ReportAll)
			break
		}
		b.WriteString("\n" + line)
		room -= need
		left -= need
	}
	for _, n := range s.notes {
		b.WriteString("\n" + n)
	}
	return b.String()
}

func (t *toolset) services() section {
	s := section{what: "services", heading: "services", empty: "(no services provided)"}
	for _, info := range t.ctx.Runtime().Services() {
		state := ""
		if st := info.Owner.State(); st != cordis.Active {
			state = ", " + st.String()
		}
		line := fmt.Sprintf("- %s (provided by %s%s)", plain.Name(info.Name), plain.Name(info.Owner.Name()), state)
		if now := configured(info); now != "" {
			line += "\n" + indent + now
		}
		s.lines = append(s.lines, line)
	}
	return s
}

func (t *toolset) plugins(scope *tool.Scope) section {
	s := section{what: "plugins", heading: "plugins", empty: "(no plugins)"}
	files := map[*cordis.Fiber]*mount.Mount{}
	for _, m := range t.files(scope) {
		files[m.Fiber()] = m
	}
	rows, notices := t.rows(scope)
	s.notes = notices
	for _, f := range t.ctx.Runtime().Fibers() {
		if f.Parent() == nil {
			continue // the root is no plugin
		}
		line := fmt.Sprintf("- %s [%s]", plain.Name(f.Name()), f.State())
		if m := files[f]; m != nil {
			line += " — plugin file " + plain.Name(m.ID) + brought(m) + trouble(m)
		}
		s.lines = append(s.lines, line)
	}
	slices.SortFunc(s.lines, cmp.Compare[string])
	s.lines = append(rows, s.lines...)
	return s
}

func (t *toolset) tools(scope *tool.Scope) section {
	s := section{what: "tools", heading: "tools", empty: "(no tools)"}
	var hidden map[string]string
	if t.cfg.Hidden != nil {
		hidden = t.cfg.Hidden()
	}
	for _, v := range t.registry.List(scope) {
		line := "- " + plain.Name(v.Name)
		if v.Mount != nil {
			line += " (" + plain.Name(v.Mount.ID) + ")"
		}
		if why, ok := hidden[v.Name]; ok {
			line += " (left out of the client's list: " + plain.Line(why, limits.SourceLine) + ")"
		}
		s.lines = append(s.lines, line)
	}
	for _, w := range t.registry.Withheld(scope) {
		s.lines = append(s.lines, "- "+plain.Name(w.Name)+" (withheld: "+plain.Line(w.Reason, limits.SourceLine)+")")
	}
	return s
}

func (t *toolset) temporary() section {
	s := section{
		what: "temporary", heading: "Temporary Plugins",
		empty: "No temporary Plugins are running. Temporary Plugins created with cordis_mount disappear when DSH restarts.",
	}
	for _, m := range t.set.List() {
		if m.Retired() {
			continue
		}
		s.lines = append(s.lines, fmt.Sprintf("- Temporary Plugin %s: %s [%s] — provides: %s; waiting for: %s; lifetime: until unmounted or DSH restarts%s",
			m.ID, m.Name(), m.StateText(), orNone(m.Provides()), orNone(m.Waiting()), brought(m)+trouble(m)))
	}
	if lost := t.set.Lost(); len(lost) > 0 {
		names := make([]string, len(lost))
		for i, g := range lost {
			names[i] = g.ID + " (" + g.Plugin + ")"
		}
		s.notes = append(s.notes, "Gone with the toolset, when that was reloaded, reconfigured or disabled: "+listed(names, shownNames)+". Nothing is mounted again by itself; mount anew what you still need.")
	}
	if down := t.set.Down(); down != "" {
		s.notes = append(s.notes, "Attention: "+down+".")
	}
	s.notes = append(s.notes, t.worker())
	return s
}

// brought is what a row of the list adds about what a mount has registered.
func brought(m *mount.Mount) string {
	var parts string
	if tools := m.Tools(); len(tools) > 0 {
		names := make([]string, len(tools))
		for i, v := range tools {
			names[i] = v.Name
		}
		parts += "; tools: " + listed(names, rowList)
	}
	if n := m.Came().Listeners; n > 0 {
		parts += fmt.Sprintf("; listeners: %d", n)
	}
	return parts
}

// rowList is how many characters of each list a row shows.
const rowList = 150

// trouble is what a row of the list adds about a mount that is not well.
func trouble(m *mount.Mount) string {
	var parts []string
	if f := m.Fiber(); f != nil {
		if err := f.Err(); err != nil {
			parts = append(parts, "error: "+plain.Line(err.Error(), limits.SourceLine))
		}
		if circle := circleOf(f); circle != "" {
			parts = append(parts, circle)
		}
	}
	if n := m.Respawns(); n > 0 {
		parts = append(parts, fmt.Sprintf("%s %d times, with empty state", reloaded(m), n))
	}
	if n := len(m.Faults()); n > 0 {
		parts = append(parts, fmt.Sprintf("errors: %d (see cordis_inspect what:%q name:%q)", n, sectionOf(m), plain.Name(m.ID)))
	}
	if n := m.Dropped(); n > 0 {
		parts = append(parts, fmt.Sprintf("events dropped: %d", n))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, "; ")
}

// circleOf names the plugins that wait for each other; "": none do.
func circleOf(f *cordis.Fiber) string {
	circle := f.Waiting().Cycle
	if len(circle) == 0 {
		return ""
	}
	if skip := len(circle) - shownCircle; skip > 0 {
		circle = slices.Replace(slices.Clone(circle), shownCircle-1, len(circle)-1, fmt.Sprintf("(%d more)", skip))
	}
	return "waits in a circle: " + strings.Join(names(circle), " → ")
}

// shownCircle bounds the plugins of a circle that are named.
const shownCircle = 12

// worker says where temporary plugins run and what is locked there.
func (t *toolset) worker() string {
	lock, running := t.sandbox.Lock()
	if !running {
		return "Worker process: not started; it starts with the first cordis_mount."
	}
	return "Worker process: " + lockText(lock)
}

func lockText(l wire.Lock) string {
	return fmt.Sprintf("running; Landlock: %s; seccomp: %s; memory: %s.", orUnknown(l.Landlock), orUnknown(l.Seccomp), orUnknown(l.Memory))
}

func orUnknown(s string) string {
	if s == "" {
		return "not known"
	}
	return plain.Line(s, limits.Preview)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return listed(names, shownNames)
}

// shownNames is how many characters of names one list in a report shows.
const shownNames = 1000

// listed joins names as far as max characters go and says how many follow.
func listed(names []string, max int) string {
	n := 0
	for i, name := range names {
		if n += len(name) + 2; n > max && i > 0 {
			return fmt.Sprintf("%s and %d more", strings.Join(names[:i], ", "), len(names)-i)
		}
	}
	return strings.Join(names, ", ")
}

// sectionOf is the section that a plugin is listed in.
func sectionOf(m *mount.Mount) string {
	if m.Code() != nil {
		return "plugins"
	}
	return "temporary"
}

// reloaded says how a plugin came to another machine.
func reloaded(m *mount.Mount) string {
	if m.Code() != nil {
		return "loaded again"
	}
	return "mounted again from its source"
}

// reportOne is everything about one temporary plugin.
func (t *toolset) reportOne(id string) (string, error) {
	m, ok := t.set.Get(id)
	if !ok {
		text := fmt.Sprintf("no temporary Plugin with id %q (list them with cordis_inspect what:\"temporary\")", plain.Name(id))
		if fate := t.set.Fate(id); fate != "" {
			text += "; it " + fate
		}
		return "", errors.New(text + t.called(id))
	}
	return t.reportMount(m), nil
}

// reportMount is everything about a plugin that runs in a sandbox: its source whole,
// the rest within limits.ReportName.
func (t *toolset) reportMount(m *mount.Mount) string {
	var b strings.Builder
	if m.Code() != nil {
		fmt.Fprintf(&b, "## Plugin file %s\n", plain.Name(m.ID))
	} else {
		fmt.Fprintf(&b, "## Temporary Plugin %s\n", m.ID)
	}
	fmt.Fprintf(&b, "- name: %s\n- state: %s\n- injects: %s; waiting for: %s\n- provides: %s\n", m.Name(), m.StateText(), orNone(names(m.Injects())), orNone(m.Waiting()), orNone(m.Provides()))
	c := m.Counters()
	fmt.Fprintf(&b, "- calls into its functions: %d; errors: %d; engine time: %.1f ms; heap: %d KB; abandoned calls still running: %d; events dropped: %d\n",
		c.Calls, c.Errors, float64(c.Engine.Microseconds())/1000, c.Heap/1024, m.Abandoned(), m.Dropped())
	if n := m.Respawns(); n > 0 {
		fmt.Fprintf(&b, "- %s %d times, each time with empty state\n", reloaded(m), n)
	}
	if f := m.Fiber(); f != nil {
		if circle := circleOf(f); circle != "" {
			fmt.Fprintf(&b, "- %s\n", circle)
		}
	}
	if f := m.Fiber(); f != nil && f.Err() != nil {
		fmt.Fprintf(&b, "- error: %s\n", plain.Line(f.Err().Error(), limits.ErrorText))
	}
	writeEffects(&b, mount.OwnEffects(m.Effects()))
	writeLast(&b, "last errors", m.Faults(), 5)
	writeLast(&b, "last console lines", m.Lines(), 20)
	head := plain.Cut(b.String(), limits.ReportName)
	if m.Code() == nil {
		return head + "\nSource, as it was mounted:\n" + fence(m.Source)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Code().Files)) {
		head += "\nSource, as it was loaded, " + plain.Name(name) + ":\n" + fence(m.Code().Files[name])
	}
	return head
}

// called says which temporary plugins have a name that was given for an id; "": none.
func (t *toolset) called(name string) string {
	var ids []string
	for _, m := range t.set.List() {
		if m.Name() == plain.Name(name) {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("; of that name: %s (give the id)", listed(ids, rowList))
}

func names(raw []string) []string {
	out := make([]string, len(raw))
	for i, n := range raw {
		out[i] = plain.Name(n)
	}
	return out
}

// shownEffects bounds the effects that one report lists.
const shownEffects = 40

func writeEffects(b *strings.Builder, effects []cordis.EffectInfo) {
	fmt.Fprintf(b, "- effects: %d\n", len(effects))
	for i, e := range effects {
		if i == shownEffects {
			fmt.Fprintf(b, "  - (and %d more)\n", len(effects)-i)
			break
		}
		fmt.Fprintf(b, "  - %s\n", plain.Line(e.Label, limits.Name*2))
	}
}

func writeLast(b *strings.Builder, what string, lines []string, most int) {
	if len(lines) == 0 {
		return
	}
	if skip := len(lines) - most; skip > 0 {
		fmt.Fprintf(b, "- %s (%d older ones left out):\n", what, skip)
		lines = lines[skip:]
	} else {
		fmt.Fprintf(b, "- %s:\n", what)
	}
	for _, l := range lines {
		fmt.Fprintf(b, "  - %s\n", plain.Line(l, limits.SourceLine*2))
	}
}

// fence puts text into a code block whose fence the text cannot close.
func fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + "js\n" + text + "\n" + mark
}
