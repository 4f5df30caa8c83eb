// Command dsh is an agent harness in which everything is a plugin and the agent
// can see, extend and repair the live runtime it runs in.
//
//	dsh demo     watch it happen, without a key or a network
//	dsh mcp      serve the runtime to an MCP client over standard input and output
//	dsh version  print the version
//
// To build a program of your own with other plugins, copy package cli, which
// wires the parts together, and package standard, which is its list of plugins.
package main

import (
	"os"

	"github.com/dsh-go/dsh/cli"
)

func main() { os.Exit(cli.Main()) }
