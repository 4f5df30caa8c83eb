// Package prelude holds the JavaScript that runs first in every virtual machine
// of a worker: the globals of a mount, the façade ctx that apply receives, the
// boundary of harness.defineTool, and the codec through which values cross to
// the host and to other machines.
//
// [Source] is one script. Before it runs, the machine must have the natives
// __host, __hold, __text, __data and __value of qjs; the script takes them off the
// global, builds everything and hands its dispatcher to __hold. What the dispatcher and the host say to each
// other is text, described in dispatch.js (from Go) and host.js (to Go).
//
// The script promises three things. It captures every primordial it uses before
// any other code runs, and from then on calls nothing that a mount can replace:
// a mount that breaks the language breaks it for itself only. Whatever enters
// the machine is built with the machine's own constructors. And it decides
// nothing: the façade teaches, the host enforces.
//
// The package starts no goroutine; its functions may be called from anywhere.
package prelude

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/limits"
)

// Filename is the name under which the prelude is to be compiled, so that its
// frames can be told apart in stacks.
const Filename = "prelude.js"

// The files, in the order in which they are joined; each may use only what is
// declared in those before it while the script starts.
var (
	//go:embed primordials.js
	primordialsJS string
	//go:embed parts.js
	partsJS string
	//go:embed lossless.js
	losslessJS string
	//go:embed errors.js
	errorsJS string
	//go:embed host.js
	hostJS string
	//go:embed console.js
	consoleJS string
	//go:embed effect.js
	effectJS string
	//go:embed tool.js
	toolJS string
	//go:embed facade.js
	facadeJS string
	//go:embed plugin.js
	pluginJS string
	//go:embed globals.js
	globalsJS string
	//go:embed caps.js
	capsJS string
	//go:embed dispatch.js
	dispatchJS string
)

// The files of the parts.
var (
	//go:embed definetool.js
	defineToolJS string
	//go:embed inject.js
	injectJS string
	//go:embed service.js
	serviceJS string
	//go:embed hostcall.js
	hostCallJS string
	//go:embed hostobject.js
	hostObjectJS string
	//go:embed exact.js
	exactJS string
	//go:embed inspect.js
	inspectJS string
	//go:embed encoding.js
	encodingJS string
	//go:embed codec.js
	codecJS string
	//go:embed peer.js
	peerJS string
	//go:embed serve.js
	serveJS string
	//go:embed abort.js
	abortJS string
	//go:embed generator.js
	generatorJS string
	//go:embed timer.js
	timerJS string
	//go:embed module.js
	moduleJS string
	//go:embed teach.js
	teachJS string
)

// bounds are the numbers that the script's texts and checks use.
type bounds struct {
	Depth        int    `json:"depth"`
	Result       int    `json:"result"`
	Handles      int    `json:"handles"`
	Progress     int    `json:"progress"`
	Preview      int    `json:"preview"`
	ConsoleBytes int    `json:"consoleBytes"`
	Services     int    `json:"services"`
	Members      int    `json:"members"`
	ToolName     string `json:"toolName"`
}

// Part is a script that a machine runs when it first needs it: its value is a
// function, which goes to the dispatcher as dispatch("part", Name, value).
type Part struct {
	Name   string
	Source string
	// Hint is a word that the code of nearly every plugin has that will ask for the
	// part, and hardly any other; "" for none. A machine that waits for such a
	// plugin may have run the part already.
	Hint string
}

var allParts = sync.OnceValue(func() []Part {
	part := func(name string, files ...string) Part {
		return Part{Name: name, Source: "(function (core) {\n'use strict';\n" + strings.Join(files, "") + "})"}
	}
	tool := part("tool", defineToolJS)
	tool.Hint = "defineTool"
	return []Part{
		tool,
		part("inject", injectJS),
		part("module", moduleJS),
		part("service", serviceJS),
		part("host", hostCallJS, hostObjectJS),
		part("exact", exactJS),
		part("inspect", inspectJS),
		part("encoding", encodingJS),
		part("peer", codecJS, peerJS, serveJS),
		part("abort", abortJS),
		part("effect", generatorJS),
		part("timer", timerJS),
		part("teach", teachJS),
	}
})

// script returns the core; parts is what it knows of the parts.
func script(parts string) string {
	numbers, err := json.Marshal(bounds{
		Depth:        limits.Depth,
		Result:       limits.Result,
		Handles:      limits.Handles,
		Progress:     limits.Progress,
		Preview:      limits.Preview,
		ConsoleBytes: limits.ConsoleLineBytes,
		Services:     limits.Services,
		Members:      limits.Members,
		ToolName:     limits.ToolName,
	})
	if err != nil { // numbers and a string: cannot happen
		panic(err)
	}
	return "(function (nativeHost, nativeHold, nativeText, nativeData, nativeValue, LIMITS, PARTS) {\n'use strict';\n" + strings.Join([]string{
		primordialsJS, partsJS, losslessJS, errorsJS, hostJS, consoleJS, effectJS, toolJS, facadeJS, pluginJS,
		globalsJS, capsJS, dispatchJS,
	}, "") + "})(__host, __hold, __text, __data, __value, " + string(numbers) + ", " + parts + ");\n"
}

var core = sync.OnceValue(func() string { return script("null") })

var source = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("{ __proto__: null")
	for _, p := range allParts() {
		b.WriteString(", " + p.Name + ": " + p.Source)
	}
	b.WriteString(" }")
	return script(b.String())
})

var hash = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(source()))
	return hex.EncodeToString(sum[:])
})

// Source returns the whole prelude as one script: [Core] with every part in it.
// It is the same text in every call and every build of one version.
func Source() string { return source() }

// Core returns the script without the parts, less than half the size in memory. A
// machine that has run it asks for a part with __host("part", name), which the
// worker answers, before it returns, by running the part's script in the machine
// and dispatching "part" with the name and the script's value.
func Core() string { return core() }

// Parts returns the parts, to be compiled once and kept as bytecode.
func Parts() []Part { return slices.Clone(allParts()) }

// Hash returns the SHA-256 of [Source] in hexadecimal, which stands for [Core] and
// [Parts] too; host and worker compare it.
func Hash() string { return hash() }
