package selfmod

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/mount"
)

const (
	indent = "    "

	apiHead     = "Name a service in inject, then call ctx.<service>.<method>(…). ctx.tools needs no inject; timer's methods are on ctx itself: ctx.setTimeout(…)."
	absentHead  = "not running (loadable services with no live provider): "
	shapesHead  = "type shapes (referenced by the signatures above — read these before assuming a field is a string):"
	contextHead = "inherited ctx API:"
)

// described is a service that says how it is configured.
type described interface{ Describe() string }

// api is the section of that name: the part of the catalog that is live.
type api struct {
	services []liveService
	others   []string // lines of live services that have no entry
	absent   []string // keys of those that nobody provides

	shown map[string]bool // the types whose shapes the last text has
}

type liveService struct {
	*catalog.Service
	now string // how it is configured; "": nothing to say
}

// liveAPI intersects the catalog with what is provided.
func (t *toolset) liveAPI() *api {
	a := new(api)
	live := t.provided()
	for i := range catalog.Services {
		s := &catalog.Services[i]
		info, ok := live[s.Key]
		if !ok {
			a.absent = append(a.absent, s.Key)
			continue
		}
		a.services = append(a.services, liveService{s, configured(info)})
	}
	for _, info := range t.ctx.Runtime().Services() {
		if _, known := catalog.LookupService(info.Name); !known {
			a.others = append(a.others, uncatalogued(info))
		}
	}
	return a
}

// provided are the services whose providers are active, by name.
func (t *toolset) provided() map[string]cordis.ServiceInfo {
	out := map[string]cordis.ServiceInfo{}
	for _, info := range t.ctx.Runtime().Services() {
		if _, had := out[info.Name]; !had && info.Owner.State() == cordis.Active {
			out[info.Name] = info
		}
	}
	return out
}

// configured is what a service says of itself.
func configured(info cordis.ServiceInfo) string {
	if d, ok := info.Value.(described); ok {
		return plain.Line(d.Describe(), limits.ErrorText)
	}
	return ""
}

func uncatalogued(info cordis.ServiceInfo) string {
	why := "not for plugins"
	if _, ok := info.Value.(*mount.Service); ok {
		why = "no catalog entry"
	}
	line := fmt.Sprintf("- %s (provided by %s, %s)", plain.Name(info.Name), plain.Name(info.Owner.Name()), why)
	if m := memberList(info, rowMembers); m != "" {
		line += "\n" + indent + m
	}
	return line
}

// text writes the section in at most max characters. What does not fit is left
// out in this order: shapes, services without an entry, signatures.
func (a *api) text(max int) string {
	a.shown = nil
	var above, below page
	above.add("## api", apiHead)
	var signatures []string
	for _, s := range a.services {
		above.add("- " + s.Key + " — " + s.Summary)
		above.docs(s.now)
		for _, m := range s.Methods {
			above.indented(m.Signature)
			signatures = append(signatures, m.Signature)
		}
	}
	if above.size > max*3/4 {
		return a.brief(max)
	}
	a.rest(&above, max/3)
	below.add(contextHead)
	for _, m := range catalog.Context {
		below.add("- " + m.Group + " — " + m.Summary)
	}
	if above.size+below.size > max {
		below = page{}
		below.add(`(cut: the members of every ctx; cordis_inspect what:"api" name:"ctx" shows them)`)
	}
	a.shown = shapes(&above, max-above.size-below.size, shortShape, catalog.Closure(signatures...),
		`cordis_inspect what:"api" with the name of a service, a method (fs.readText) or a type shows them`)
	above.add(below.lines...)
	return above.text(max)
}

// rest adds the services that have no entry, in at most room characters, and
// those that are not running.
func (a *api) rest(p *page, room int) {
	for i, line := range a.others {
		if room -= len(line) + 1; room < 0 {
			p.add(fmt.Sprintf("(cut: %d more services without a catalog entry; cordis_inspect what:\"services\" lists them)", len(a.others)-i))
			break
		}
		p.add(line)
	}
	if len(a.absent) > 0 {
		p.add(absentHead + strings.Join(a.absent, ", "))
	}
}

// brief is the section where there is no room for signatures.
func (a *api) brief(max int) string {
	var p page
	p.add("## api", `(cut: signatures and types; cordis_inspect what:"api" shows them, and with the name of a service its docs, too)`)
	for _, s := range a.services {
		p.add("- " + s.Key + ": " + listed(methodNames(s.Methods), rowMembers))
	}
	a.rest(&p, max/3)
	return p.text(max)
}

// page is lines with their size.
type page struct {
	lines []string
	size  int // in bytes, line ends included
}

func (p *page) add(lines ...string) {
	for _, l := range lines {
		p.lines = append(p.lines, l)
		p.size += len(l) + 1
	}
}

// indented adds the lines of a text, unless it is empty.
func (p *page) indented(text string) {
	if text == "" {
		return
	}
	p.add(indent + strings.ReplaceAll(text, "\n", "\n"+indent))
}

// docs adds the lines of a comment.
func (p *page) docs(text string) {
	if text = strings.ReplaceAll(strings.TrimSpace(text), "\n\n", "\n"); text != "" {
		p.add(indent + "// " + strings.ReplaceAll(text, "\n", "\n"+indent+"// "))
	}
}

// text joins the lines; a page that is too long all the same is cut.
func (p *page) text(max int) string { return plain.Cut(strings.Join(p.lines, "\n"), max) }

// Forms of a type.
func shortShape(t *catalog.Type) string { return t.Short }
func fullShape(t *catalog.Type) string  { return t.Declaration }

// shapesSize is how many bytes the shapes of types take.
func shapesSize(form func(*catalog.Type) string, types []catalog.Type) int {
	total := len(shapesHead) + 1
	for i := range types {
		total += size(form(&types[i]))
	}
	return total
}

// shapesNote is room for the line that says which shapes are missing.
const shapesNote = 450

// shapes adds types as far as room goes, says what it leaves out and how to get
// it, and returns which it shows.
func shapes(p *page, room int, form func(*catalog.Type) string, types []catalog.Type, how string) map[string]bool {
	if len(types) == 0 {
		return nil
	}
	if shapesSize(form, types) > room {
		room -= shapesNote
	}
	room -= len(shapesHead) + 1
	var lines page
	shown := map[string]bool{}
	var missing []string
	for i := range types {
		text := form(&types[i])
		if room < size(text) {
			missing = append(missing, types[i].Name)
			continue
		}
		room -= size(text)
		lines.indented(text)
		shown[types[i].Name] = true
	}
	if len(shown) > 0 {
		p.add(shapesHead)
		p.add(lines.lines...)
	}
	if len(missing) > 0 {
		p.add(fmt.Sprintf("(cut: %d of %d type shapes: %s; %s)", len(missing), len(types), listed(missing, rowList), how))
	}
	return shown
}

// size is how many bytes an indented text takes.
func size(text string) int {
	return len(text) + 1 + len(indent)*(1+strings.Count(text, "\n"))
}
