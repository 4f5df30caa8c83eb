package demo

import (
	"embed"
	"slices"
	"time"
)

// VMTimeout is the limit of one entry into mounted code that the server of the
// demonstration is to be started with: short, since somebody is watching.
const VMTimeout = 400 * time.Millisecond

//go:embed plugins
var plugins embed.FS

// readme is a copy of the README: an embedded file cannot lie outside of the
// package's folder. A test keeps it equal.
//
//go:embed readme.txt
var readme string

// step is one part of the demonstration.
type step struct {
	title string
	acts  []act
}

// act is one call, or one look at the list of tools, and what must come of it.
type act struct {
	say  string // printed before it; "": nothing
	tool string // "": tools/list

	args   map[string]any
	plugin string // a file of plugins, as the code of cordis_mount
	code   int    // how many lines of that file are shown; 0: none
	text   bool   // the README is the argument text

	fails   bool          // the answer must be an error
	has     []string      // what the answer must hold
	only    []string      // of tools/list: exactly these names
	told    bool          // the server must have said that the list changed
	during  *act          // called while this one runs; must be answered first
	atLeast time.Duration // how long it takes at least
}

// The three tools, which are there before and after everything else.
var toolset = []string{"cordis_inspect", "cordis_mount", "cordis_unmount"}

func list(say string) act { return act{say: say, only: toolset} }

func unmount(say, id string, has ...string) act {
	return act{say: say, tool: "cordis_unmount", args: map[string]any{"id": id}, has: append([]string{id + " was unmounted and removed"}, has...)}
}

var script = []step{
	{"What is live", []act{
		{
			say:  "An agent has connected. It asks what it runs in: everything here is a plugin.",
			tool: "cordis_inspect", args: map[string]any{"what": "plugins"},
			has: []string{"- serve-mcp [active]", "- tool-cordis [active]", "- cordis-dynamic [active]"},
		},
		list("It can call three tools."),
	}},
	{"A tool that was missing", []act{
		{
			say:  "It wants to know how the README is built, and has no tool for that. It writes one.",
			tool: "cordis_mount", plugin: "outline", code: 100,
			has: []string{`dyn-1 is running (plugin "outline"`, "- outline {"},
		},
		{say: "The client is told that its list has changed, and reads it.", told: true, only: append(slices.Clone(toolset), "outline")},
		{tool: "outline", text: true, has: []string{" words, ", " headings: dsh · Try it"}},
	}},
	{"Plugins that need each other", []act{
		{
			say:  "A second tool leaves common words to a service that nobody provides yet. It waits.",
			tool: "cordis_mount", plugin: "top-words", code: 4,
			has: []string{`dyn-2 is pending (plugin "top-words"; missing services: stopwords`},
		},
		{
			say:  "The provider comes, and the consumer wakes.",
			tool: "cordis_mount", plugin: "stopwords", code: 100,
			has: []string{"dyn-3 is running", "Provides: stopwords", "Became active: top-words"},
		},
		{tool: "top_words", text: true, has: []string{", "}},
		unmount("The provider goes. The consumer is parked, and its tool with it.", "dyn-3",
			"Gone tools: top_words", "Gone services: stopwords", "Parked until a service comes back: top-words"),
		{tool: "top_words", text: true, fails: true, has: []string{"dyn-2 (top-words)", "dyn-3 (unmounted)"}},
		{
			say:  "The provider comes back, and the consumer runs again.",
			tool: "cordis_mount", plugin: "stopwords",
			has: []string{"dyn-4 is running", "Became active: top-words"},
		},
		{tool: "top_words", text: true, has: []string{", "}},
	}},
	{"A mistake, and its mending", []act{
		{
			say:  "Out of habit, the agent writes for another runtime.",
			tool: "cordis_mount", plugin: "heartbeat-wrong", code: 6,
			fails: true, has: []string{"inject: ['timer']", "ctx.setInterval", "cordis-mount-dyn-5.js:6:", "Nothing is mounted; the id dyn-5 is used up"},
		},
		{
			say:  "The refusal says how to do it, so the next attempt is right.",
			tool: "cordis_mount", plugin: "heartbeat", code: 6,
			has: []string{"dyn-6 is running"},
		},
		{tool: "pulse", has: []string{"It beats."}},
	}},
	{"A runaway", []act{
		{
			say:  "This one counts for ever and catches whatever would stop it.",
			tool: "cordis_mount", plugin: "runaway", code: 100,
			has: []string{"dyn-7 is running"},
		},
		{
			tool: "count_for_ever", fails: true, atLeast: VMTimeout,
			has:    []string{"dyn-7", "count_for_ever", "within 400 ms", "vmTimeout"},
			during: &act{tool: "pulse", has: []string{"It beats."}},
		},
	}},
	{"Nothing is left", []act{
		{
			say:  "What is mounted, and where it runs.",
			tool: "cordis_inspect", args: map[string]any{"what": "temporary"},
			has: []string{"dyn-1", "dyn-2", "dyn-4", "dyn-6", "dyn-7", "Worker process: running"},
		},
		unmount("Everything goes. Each answer is a receipt.", "dyn-7", "Gone tools: count_for_ever"),
		unmount("", "dyn-6", "1 timer", "Gone tools: pulse"),
		unmount("", "dyn-2", "Gone tools: top_words"),
		unmount("", "dyn-4", "Gone services: stopwords"),
		unmount("", "dyn-1", "Gone tools: outline"),
		{
			tool: "cordis_inspect", args: map[string]any{"what": "temporary"},
			has: []string{"No temporary Plugins are running"},
		},
		list("Three tools, as in the beginning."),
	}},
}
