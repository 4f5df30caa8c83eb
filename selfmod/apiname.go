package selfmod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/service/timer"
)

// ctxName stands for the members that every ctx has.
const ctxName = "ctx"

// timerName is the service whose methods are members of ctx itself.
var timerName = timer.Service.Name()

// typeByName is how to get a type that was cut.
const typeByName = `cordis_inspect what:"api" with a type's name shows it`

// apiOne is everything about one thing that plugins can use: a service, a
// member of one, a type, or a member of ctx.
func (t *toolset) apiOne(name string, before seen) (string, error) {
	key, _, _ := strings.Cut(name, "(") // as it is called: fs.readText(path)
	key = strings.TrimSpace(key)
	if key == ctxName {
		return ctxPage("").text(limits.ReportName), nil
	}
	if verb, ok := strings.CutPrefix(key, ctxName+"."); ok {
		key = apiKey(verb) // ctx.fs is fs
		if p := ctxPage(verb); p != nil && key == verb && verb != "tools" {
			return p.text(limits.ReportName), nil
		}
	}
	service, member, _ := strings.Cut(key, ".")
	live := t.provided()
	info, running := live[service]
	if s, ok := catalog.LookupService(service); ok {
		return apiService(s, member, info, running, before)
	}
	if running {
		return apiUncatalogued(info, member)
	}
	if typ, ok := catalog.LookupType(service); ok { // or a member of its objects
		return apiType(typ, before), nil
	}
	if _, ok := catalog.LookupEvent(key); ok {
		return "", fmt.Errorf("%q is an event%s", plain.Name(key), nameNot(key))
	}
	near := didYouMean(key, apiNames(key, live))
	if near == "" {
		near = "; what runs: " + listed(runningNames(live), rowMembers)
	}
	return "", fmt.Errorf("no catalogued service named %q%s", plain.Name(name), near)
}

// runningNames are the services that run, sorted.
func runningNames(live map[string]cordis.ServiceInfo) []string {
	running := make([]string, 0, len(live))
	for name := range live {
		running = append(running, plain.Name(name))
	}
	slices.Sort(running)
	return running
}

// apiKey is what a member of ctx is in the catalog: timer has verbs on ctx.
func apiKey(verb string) string {
	if s, ok := catalog.LookupService(timerName); ok {
		if _, ok := s.Method(verb); ok {
			return timerName + "." + verb
		}
	}
	return verb
}

func apiService(s *catalog.Service, member string, info cordis.ServiceInfo, running bool, before seen) (string, error) {
	if !running {
		return "", fmt.Errorf("catalogued service %q is not running: nothing provides it in this process now, and a plugin that requires it stays pending", s.Key)
	}
	methods := s.Methods
	if member != "" {
		m, ok := s.Method(member)
		if !ok {
			names := methodNames(s.Methods)
			return "", fmt.Errorf("service %q has no method %q%s (it has %s)", s.Key, plain.Name(member), didYouMean(member, names), strings.Join(names, ", "))
		}
		methods = []catalog.Method{*m}
	}
	return serviceText(s, methods, member, configured(info), before), nil
}

func methodNames(methods []catalog.Method) []string {
	names := make([]string, len(methods))
	for i := range methods {
		names[i] = methods[i].Name
	}
	return names
}

// serviceText is a service, or one method of it, in at most limits.ReportName
// characters. What it leaves out, in this order: the docs of types, docs of
// methods behind their first sentence, types.
func serviceText(s *catalog.Service, methods []catalog.Method, member, now string, before seen) string {
	const note = 250 // for the line that says which docs are cut
	var head page
	if member == "" {
		head.add("## api: "+s.Key, "- "+s.Key+" — "+s.Summary)
		head.docs(restOf(s.Doc, s.Summary))
		head.docs(now)
	} else {
		head.add("## api: " + s.Key + "." + member)
	}
	short, full := make([]page, len(methods)), make([]page, len(methods))
	signatures := make([]string, len(methods))
	docsSize, least := head.size, head.size+note
	for i := range methods {
		short[i], full[i] = methodPage(&methods[i], false), methodPage(&methods[i], true)
		signatures[i] = methods[i].Signature
		docsSize += full[i].size
		least += short[i].size
	}
	types := before.unseen(catalog.Closure(signatures...))
	form := fullShape
	if docsSize+shapesSize(form, types) > limits.ReportName {
		form = shortShape
		head.add(typeDocsCut)
		docsSize += len(typeDocsCut) + 1
		least += len(typeDocsCut) + 1
	}
	shapesWant := shapesSize(form, types)
	if docsSize+shapesWant > limits.ReportName {
		full = longestThatFit(short, full, limits.ReportName-least-shapesWant)
		if cut := docsCut(s.Key, methods, full); cut != "" {
			head.add(cut)
		}
	}
	for i := range full {
		head.add(full[i].lines...)
	}
	maps.Copy(before, shapes(&head, limits.ReportName-head.size, form, types, typeByName))
	return head.text(limits.ReportName)
}

const typeDocsCut = `(cut: the docs of types; cordis_inspect what:"api" with a type's name gives them)`

// longestThatFit takes the full forms as far as room goes, in their order.
func longestThatFit(short, full []page, room int) []page {
	out := slices.Clone(short)
	for i := range out {
		if more := full[i].size - short[i].size; more <= room {
			out[i], room = full[i], room-more
		}
	}
	return out
}

// docsCut says which methods have less than their whole docs; "": none.
func docsCut(key string, methods []catalog.Method, chosen []page) string {
	var names []string
	for i := range methods {
		if whole := methodPage(&methods[i], true); chosen[i].size < whole.size {
			names = append(names, methods[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("(cut: docs behind the first sentence, of %s; cordis_inspect what:\"api\" name:\"%s.%s\" gives one whole)", listed(names, rowList), key, names[0])
}

// methodPage is a signature with its docs above it, whole or their first sentence.
func methodPage(m *catalog.Method, whole bool) page {
	var p page
	if !whole {
		p.docs(m.Summary)
		p.indented(m.Signature)
		return p
	}
	p.docs(m.Doc)
	for _, param := range m.Params {
		if param.Doc != "" && !strings.Contains(m.Doc, param.Name+" ") && !strings.Contains(m.Doc, param.Name+":") {
			p.docs(param.Name + ": " + param.Doc)
		}
	}
	p.indented(m.Signature)
	return p
}

// restOf is what a doc says after its first sentence.
func restOf(doc, summary string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(doc), summary))
}

// apiType is one type, and those that it mentions.
func apiType(t *catalog.Type, before seen) string {
	var p page
	before[t.Name] = true
	p.add("## api: " + t.Name)
	p.indented(t.Declaration)
	texts := []string{t.Short}
	for _, m := range t.Methods {
		texts = append(texts, m.Signature)
	}
	others := before.unseen(catalog.Closure(texts...))
	maps.Copy(before, shapes(&p, limits.ReportName-p.size, shortShape, others, typeByName))
	return p.text(limits.ReportName)
}

// ctxPage is what every ctx has: all of it, or the groups with one verb; nil:
// there is no such verb.
func ctxPage(verb string) *page {
	var p page
	if verb == "" {
		p.add("## api: "+ctxName, contextHead)
	} else {
		p.add("## api: " + ctxName + "." + verb)
	}
	found := false
	for _, m := range catalog.Context {
		if verb == "" || slices.Contains(verbsOf(m), verb) {
			p.add("- " + m.Group + " — " + m.Summary)
			found = true
		}
	}
	if !found {
		return nil
	}
	return &p
}

// verbsOf are the members of ctx that a group is about.
func verbsOf(m catalog.Member) []string {
	var verbs []string
	for rest := m.Group; ; {
		_, after, ok := strings.Cut(rest, ctxName+".")
		if !ok {
			return verbs
		}
		end := strings.IndexFunc(after, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})
		if end < 0 {
			end = len(after)
		}
		verbs = append(verbs, after[:end])
		rest = after[end:]
	}
}

// apiNames are the names that a report can be asked for and that name could
// mean: a type begins with a capital.
func apiNames(name string, live map[string]cordis.ServiceInfo) []string {
	var names []string
	for i := range catalog.Services {
		s := &catalog.Services[i]
		names = append(names, s.Key)
		for _, m := range s.Methods {
			names = append(names, s.Key+"."+m.Name)
		}
	}
	for name := range live {
		names = append(names, plain.Name(name))
	}
	for _, m := range catalog.Context {
		for _, verb := range verbsOf(m) {
			names = append(names, ctxName+"."+verb)
		}
	}
	if name != "" && name[0] >= 'A' && name[0] <= 'Z' {
		for i := range catalog.Types {
			names = append(names, catalog.Types[i].Name)
		}
	}
	return names
}

// rowMembers is how many characters of members one line shows.
const rowMembers = 400

// memberList tells the members of a mount's service in one line of about max
// characters; "": it has none, or is no mount's.
func memberList(info cordis.ServiceInfo, max int) string {
	s, ok := info.Value.(*mount.Service)
	if !ok || len(s.Members()) == 0 {
		return ""
	}
	var shown []string
	for _, m := range s.Members() {
		shown = append(shown, memberText(m))
	}
	return listed(shown, max)
}

// memberText is a member as a signature would begin: its parameters by name, or
// their number where the names cannot be told.
func memberText(m mount.Member) string {
	switch {
	case m.Kind != "function":
		return plain.Name(m.Name)
	case len(m.Params) > 0:
		return plain.Name(m.Name) + "(" + strings.Join(m.Params, ", ") + ")"
	case m.Arity == 0:
		return plain.Name(m.Name) + "()"
	}
	return fmt.Sprintf("%s(%s)", plain.Name(m.Name), many(m.Arity, "parameter"))
}

// apiUncatalogued is about a live service that has no entry in the catalog: the
// members of a mount's service, or one of them.
func apiUncatalogued(info cordis.ServiceInfo, member string) (string, error) {
	name := plain.Name(info.Name)
	s, ok := info.Value.(*mount.Service)
	if !ok {
		return "", fmt.Errorf("no catalogued service named %q: %s provides it, and plugins cannot use it", name, plain.Name(info.Owner.Name()))
	}
	var p page
	p.add("## api: " + name)
	what := "temporary"
	if s.File {
		what = "plugins"
	}
	p.add(fmt.Sprintf("- %s (provided by %s, %s, no catalog entry; cordis_inspect what:%q name:%q shows its source)", name, s.Label(), plain.Name(info.Owner.Name()), what, plain.Name(s.Mount)))
	if s.File {
		p.add("- its plugin runs in another worker process than temporary Plugins: data crosses, functions and live objects do not")
	}
	members, names := s.Members(), []string(nil)
	for _, m := range members {
		if member == "" || m.Name == member {
			p.indented(m.Kind + " " + memberText(m))
		}
		names = append(names, plain.Name(m.Name))
	}
	switch {
	case len(members) == 0:
		p.indented("no members: it is a primitive value, or a function")
	case member != "" && len(p.lines) == 2:
		return "", fmt.Errorf("service %q has no member %q%s (it has %s)", name, plain.Name(member), didYouMean(member, names), listed(names, rowMembers))
	}
	return p.text(limits.ReportName), nil
}
