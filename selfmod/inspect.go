package selfmod

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/tool"
)

//go:embed inspect.md
var inspectText string

// InspectName is the name of the tool that reports.
const InspectName = "cordis_inspect"

// Sections are the parts of the report, in their order.
func Sections() []string { return slices.Clone(sections) }

// sections are the values of what, in the order of the whole report.
var sections = []string{"services", "plugins", "tools", "temporary", "api", "events"}

// oldTemporary is accepted for "temporary"; it is not advertised.
const oldTemporary = "dynamic"

type inspectArgs struct {
	What string `json:"what"`
	Name string `json:"name"`
}

func (t *toolset) inspectTool() *tool.Definition {
	return &tool.Definition{
		Name: InspectName, Title: "Inspect cordis runtime", Description: strings.TrimSpace(inspectText), Kind: tool.KindRead, Unrouted: true,
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("what", schema.String("One section: "+strings.Join(sections, ", ")+". Leave it out for all of them.")),
			schema.Prop("name", schema.String(`One thing in full, or with api and events several: "fs, bash.run". With what:"api": services, methods, types, ctx. With what:"events": events. With what:"temporary": one id (dyn-3). With what:"plugins": a plugin file.`)),
		)))),
		Output:          tool.Output{Schema: schema.Must(schema.Output(schema.String("The report, in Markdown."))), Render: renderText},
		ConcurrencySafe: func(context.Context, lossless.Text) bool { return true },
		PresentCall:     presentInspect,
		Execute: func(_ context.Context, exec *tool.Exec) (tool.Outcome, error) {
			var a inspectArgs
			if err := json.Unmarshal(exec.Arguments, &a); err != nil {
				return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
			}
			text, err := t.inspect(a, exec.Scope)
			if err != nil {
				return tool.Outcome{}, err
			}
			return tool.Outcome{Value: lossless.Str(text).Encode(), Rendered: &tool.Rendered{Content: []tool.Block{tool.TextBlock(text)}}}, nil
		},
	}
}

// renderText shows a value that is a string.
func renderText(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	return []tool.Block{tool.TextBlock(text)}, nil
}

func presentInspect(_ context.Context, args lossless.Text) (*tool.Card, error) {
	var a inspectArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	title := "Inspect cordis runtime"
	for _, part := range []string{a.What, a.Name} {
		if part != "" {
			title += ": " + plain.Name(part)
		}
	}
	return &tool.Card{Generic: &tool.GenericCard{Title: title, Kind: tool.KindRead}}, nil
}

// inspect writes the report that is asked for.
func (t *toolset) inspect(a inspectArgs, scope *tool.Scope) (string, error) {
	if a.What == oldTemporary {
		a.What = "temporary"
	}
	if a.What != "" && !slices.Contains(sections, a.What) {
		return "", fmt.Errorf("what must be one of %s, or left out for all, not %q%s", strings.Join(sections, ", "), plain.Name(a.What), nameNot(a.What))
	}
	if a.Name != "" {
		switch a.What {
		case "temporary":
			return t.reportOne(a.Name)
		case "plugins":
			return t.reportPlugin(a.Name, scope)
		case "api":
			return several(a.Name, t.apiOne)
		case "events":
			return several(a.Name, eventOne)
		}
		return "", errors.New(nameRule + nameNot(a.Name))
	}
	if a.What != "" {
		return t.part(a.What, scope).text(most(a.What)), nil
	}
	return t.everything(scope), nil
}

// seen are the types whose shapes an answer has already.
type seen map[string]bool

// unseen is types without those that were seen.
func (s seen) unseen(types []catalog.Type) []catalog.Type {
	return slices.DeleteFunc(types, func(t catalog.Type) bool { return s[t.Name] })
}

// several is the reports of a list of names, each within its own bound and all
// within limits.ReportAll. A shape that one has is not repeated. A name that is
// not known has its error in place of a report, unless none is known.
func several(list string, one func(name string, before seen) (string, error)) (string, error) {
	before := seen{}
	if _, args, ok := strings.Cut(list, "("); ok && strings.Contains(args, ",") {
		return one(list, before) // a call with arguments is one name
	}
	var b strings.Builder
	var asked []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(asked, name) {
			asked = append(asked, name)
		}
	}
	if len(asked) == 0 {
		return one(list, before)
	}
	var wrong error
	known := false
	for i, name := range asked {
		text, err := one(name, before)
		if err != nil {
			wrong = cmp.Or(wrong, err)
			text = "Error: " + err.Error()
		} else {
			known = true
		}
		const tail = 200 // for the line that says what is missing
		if i > 0 && b.Len()+len(text)+tail > limits.ReportAll {
			fmt.Fprintf(&b, "\n\n(cut: there was no room for %s; ask for the rest in a call of its own)", listed(names(asked[i:]), rowMembers))
			break
		}
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(text)
	}
	if !known {
		return "", wrong
	}
	return b.String(), nil
}

// nameRule is what name goes with.
const nameRule = `name is valid only with what:"api" (a service, a method such as fs.readText, a type, ctx), what:"plugins" (a plugin file), what:"events" (an event) or what:"temporary" (the id of a temporary Plugin, such as dyn-1)`

// nameNot says how to ask for what was named in a wrong place; "": not known.
func nameNot(name string) string {
	service, _, _ := strings.Cut(name, ".")
	what := "api"
	if _, ok := catalog.LookupEvent(name); ok {
		what = "events"
	} else if _, ok := catalog.LookupService(service); !ok {
		return didYouMean(name, sections)
	}
	return fmt.Sprintf("; ask with what:%q name:%q", what, plain.Name(name))
}

// part is a section of the report, which is written in at most so many characters.
type part interface{ text(max int) string }

func (t *toolset) part(what string, scope *tool.Scope) part {
	switch what {
	case "services":
		return t.services()
	case "plugins":
		return t.plugins(scope)
	case "tools":
		return t.tools(scope)
	case "temporary":
		return t.temporary()
	case "events":
		return events{}
	}
	return t.liveAPI()
}

// most is how long a section may be.
func most(what string) int {
	if what == "api" || what == "events" {
		return limits.ReportAPI
	}
	return limits.ReportAll
}

// everything is all sections. Where they do not fit, what short ones leave is
// shared out among the long ones.
func (t *toolset) everything(scope *tool.Scope) string {
	parts, texts := make([]part, len(sections)), make([]string, len(sections))
	var beside *api
	total := 0
	for i, what := range sections {
		parts[i] = t.part(what, scope)
		switch p := parts[i].(type) {
		case *api:
			beside = p
		case events:
			parts[i] = events{beside}
		}
		texts[i] = parts[i].text(most(what))
		total += len(texts[i])
	}
	all := limits.ReportAll - 2*len(sections) // for the blank lines between them
	if total > all {
		wanted := make([]int, len(texts))
		for i := range texts {
			wanted[i] = len(texts[i])
		}
		for i, room := range share(all, wanted) {
			texts[i] = parts[i].text(room)
		}
	}
	return strings.Join(texts, "\n\n")
}

// share divides room: nobody gets less than an equal part unless it wants less.
func share(room int, wanted []int) []int {
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wanted[a], wanted[b]) })
	given := make([]int, len(wanted))
	for i, who := range order {
		given[who] = min(wanted[who], room/(len(order)-i))
		room -= given[who]
	}
	return given
}
