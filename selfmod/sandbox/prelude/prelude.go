// Package prelude holds the JavaScript that runs first in every virtual machine
// of a worker: the globals of a mount, the façade ctx that apply receives, the
// boundary of harness.defineTool, and the codec through which values cross to
// the host and to other machines.
//
// [Source] is one script. Before it runs, the machine must have the natives
// __host and __hold; the script takes them off the global, builds everything and
// hands its dispatcher to __hold. What the dispatcher and the host say to each
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
	"strings"
	"sync"

	"github.com/dsh-go/dsh/limits"
)

// Filename is the name under which the prelude is to be compiled, so that its
// frames can be told apart in stacks.
const Filename = "prelude.js"

// The parts, in the order in which they are joined; each may use only what is
// declared in the parts before it while the script starts.
var (
	//go:embed primordials.js
	primordialsJS string
	//go:embed lossless.js
	losslessJS string
	//go:embed errors.js
	errorsJS string
	//go:embed host.js
	hostJS string
	//go:embed inspect.js
	inspectJS string
	//go:embed encoding.js
	encodingJS string
	//go:embed codec.js
	codecJS string
	//go:embed peer.js
	peerJS string
	//go:embed abort.js
	abortJS string
	//go:embed effect.js
	effectJS string
	//go:embed timer.js
	timerJS string
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

// bounds are the numbers that the script's texts and checks use.
type bounds struct {
	Depth        int    `json:"depth"`
	Result       int    `json:"result"`
	Handles      int    `json:"handles"`
	Progress     int    `json:"progress"`
	Preview      int    `json:"preview"`
	ConsoleBytes int    `json:"consoleBytes"`
	Services     int    `json:"services"`
	ToolName     string `json:"toolName"`
}

var source = sync.OnceValue(func() string {
	numbers, err := json.Marshal(bounds{
		Depth:        limits.Depth,
		Result:       limits.Result,
		Handles:      limits.Handles,
		Progress:     limits.Progress,
		Preview:      limits.Preview,
		ConsoleBytes: limits.ConsoleLineBytes,
		Services:     limits.Services,
		ToolName:     limits.ToolName,
	})
	if err != nil { // numbers and a string: cannot happen
		panic(err)
	}
	var b strings.Builder
	b.WriteString("(function (nativeHost, nativeHold, LIMITS) {\n'use strict';\n")
	for _, part := range []string{
		primordialsJS, losslessJS, errorsJS, hostJS, inspectJS, encodingJS, codecJS, peerJS, abortJS,
		effectJS, timerJS, toolJS, facadeJS, pluginJS, globalsJS, capsJS, dispatchJS,
	} {
		b.WriteString(part)
	}
	b.WriteString("})(__host, __hold, " + string(numbers) + ");\n")
	return b.String()
})

var hash = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(source()))
	return hex.EncodeToString(sum[:])
})

// Source returns the script. It is the same text in every call and every build
// of one version.
func Source() string { return source() }

// Hash returns the SHA-256 of [Source] in hexadecimal; host and worker compare it.
func Hash() string { return hash() }
