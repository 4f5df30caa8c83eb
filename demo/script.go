package demo

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/script"
	"github.com/dsh-go/dsh/lossless"
)

// VMTimeout is the limit of one entry into mounted code that the runtime of the
// demonstration is to have: short, since somebody is watching.
const VMTimeout = 400 * time.Millisecond

//go:embed plugins
var plugins embed.FS

// readme is a copy of the README: an embedded file cannot lie outside of the
// package's folder. A test keeps it equal.
//
//go:embed readme.txt
var readme string

// task is what the person asks for.
const task = "Show what you can do with the runtime that you run in. There is a README.md here to try things on; leave nothing behind."

// farewell is the last answer, which calls no tool.
const farewell = "Nothing is left of what I mounted, and the tools are those of the beginning."

// part is one part of the demonstration.
type part struct {
	title string
	acts  []act
}

// act is one answer of the model: what it says, what it calls, and what must
// come of it.
type act struct {
	say    string
	calls  []call
	offers []string // exactly what the request after it offers; nil: not looked at
}

// call is one call of an act.
type call struct {
	tool   string
	args   map[string]any
	plugin string // a file of plugins, as the code of cordis_mount
	code   int    // how many lines of that file are shown; 0: none

	fails bool     // the answer must be an error
	has   []string // what the answer must hold
}

// The three tools, which are there before and after everything else.
var toolset = []string{"cordis_inspect", "cordis_mount", "cordis_unmount"}

func mount(plugin string, code int, has ...string) call {
	return call{tool: "cordis_mount", plugin: plugin, code: code, has: has}
}

func unmount(id string, has ...string) call {
	return call{tool: "cordis_unmount", args: map[string]any{"id": id}, has: append([]string{id + " was unmounted and removed"}, has...)}
}

func inspect(what string, has ...string) call {
	return call{tool: "cordis_inspect", args: map[string]any{"what": what}, has: has}
}

func onReadme(tool string, has ...string) call {
	return call{tool: tool, args: map[string]any{"path": readmeName}, has: has}
}

func (c call) failing() call {
	c.fails = true
	return c
}

func says(text string, calls ...call) act { return act{say: text, calls: calls} }

var parts = []part{
	{"What is live", []act{
		{
			say:    "First I look at what I run in. Everything here is a plugin, and I can call three tools.",
			calls:  []call{inspect("plugins", "- agents [active]", "- tool-cordis [active]", "- cordis-dynamic [active]")},
			offers: toolset,
		},
	}},
	{"A tool that was missing", []act{
		{
			say:    "How is the README built? I have no tool for that, so I write one.",
			calls:  []call{mount("outline", 100, `dyn-1 is running (plugin "outline"`, "- outline {")},
			offers: append(slices.Clone(toolset), "outline"),
		},
		says("It is there on my next step.", onReadme("outline", " words, ", " headings: dsh · Try it")),
	}},
	{"Plugins that need each other", []act{
		says("A second tool leaves common words to a service that nobody provides yet. It waits.",
			mount("top-words", 4, `dyn-2 is pending (plugin "top-words"; missing services: stopwords`)),
		says("The provider comes, and the consumer wakes.",
			mount("stopwords", 100, "dyn-3 is running", "Provides: stopwords", "Became active: top-words")),
		says("", onReadme("top_words", ", ")),
		says("The provider goes. The consumer is parked, and its tool with it.",
			unmount("dyn-3", "Gone tools: top_words", "Gone services: stopwords", "Parked until a service comes back: top-words")),
		says("", onReadme("top_words", "dyn-2 (top-words)", "dyn-3 (unmounted)").failing()),
		says("The provider comes back, and the consumer runs again.",
			mount("stopwords", 0, "dyn-4 is running", "Became active: top-words")),
		says("", onReadme("top_words", ", ")),
	}},
	{"A mistake, and its mending", []act{
		says("Out of habit, I write for another runtime.",
			mount("heartbeat-wrong", 6, "inject: ['timer']", "ctx.setInterval", "cordis-mount-dyn-5.js:6:", "Nothing is mounted; the id dyn-5 is used up").failing()),
		says("The refusal says how to do it, so the next attempt is right.",
			mount("heartbeat", 6, "dyn-6 is running")),
		says("", call{tool: "pulse", has: []string{"It beats."}}),
	}},
	{"A runaway", []act{
		says("This one counts for ever and catches whatever would stop it.",
			mount("runaway", 100, "dyn-7 is running")),
		says("I call it and the heart at the same time. One is stopped, the other goes on.",
			call{tool: "count_for_ever", fails: true, has: []string{"dyn-7", "count_for_ever", "within 400 ms", "vmTimeout"}},
			call{tool: "pulse", has: []string{"It beats."}}),
	}},
	{"Nothing is left", []act{
		says("What is mounted, and where it runs.",
			inspect("temporary", "dyn-1", "dyn-2", "dyn-4", "dyn-6", "dyn-7", "Worker process: running")),
		says("Everything goes. Each answer is a receipt.",
			unmount("dyn-7", "Gone tools: count_for_ever"),
			unmount("dyn-6", "1 timer", "Gone tools: pulse"),
			unmount("dyn-2", "Gone tools: top_words"),
			unmount("dyn-4", "Gone services: stopwords"),
			unmount("dyn-1", "Gone tools: outline")),
		{calls: []call{inspect("temporary", "No temporary Plugins are running")}, offers: toolset},
	}},
}

// Model returns the model of the demonstration: it plays the script, whatever it
// is answered, and [Play] checks the answers.
func Model() (llm.Adapter, error) {
	played := &script.Script{}
	for _, p := range parts {
		for _, a := range p.acts {
			step := script.Step{Text: a.say}
			for _, c := range a.calls {
				args, err := c.arguments()
				if err != nil {
					return nil, err
				}
				step.Calls = append(step.Calls, script.Call{Name: c.tool, Arguments: script.Arguments(args)})
			}
			played.Steps = append(played.Steps, step)
		}
	}
	played.Steps = append(played.Steps, script.Step{Text: farewell})
	return script.New(played), nil
}

// arguments are what the call is made with, as JSON.
func (c call) arguments() (string, error) {
	args := c.args
	if c.plugin != "" {
		code, err := source(c.plugin)
		if err != nil {
			return "", err
		}
		args = map[string]any{"code": code}
	}
	if args == nil {
		return "{}", nil
	}
	v, err := lossless.From(args)
	if err != nil {
		return "", fmt.Errorf("write arguments of %s: %w", c.tool, err)
	}
	return string(v.Encode()), nil
}

// source is the code of a plugin.
func source(name string) (string, error) {
	code, err := plugins.ReadFile(path.Join("plugins", name+".js"))
	if err != nil {
		return "", fmt.Errorf("read plugin: %w", err)
	}
	return strings.TrimRight(string(code), "\n"), nil
}
