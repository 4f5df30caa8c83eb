package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dsh-go/dsh/cli"
	"github.com/dsh-go/dsh/internal/gen/surface"
	"github.com/dsh-go/dsh/limits"
)

// setting is one number of the toolset's configuration.
type setting struct {
	name, fallback, min, max, unit, text string
}

// settings are those of selfmod.Config. A test holds them against what the
// sandbox accepts.
var settings = []setting{
	{"vmTimeoutMs", millis(limits.VMTimeout), millis(limits.VMTimeoutMin), millis(limits.VMTimeoutMax), "ms",
		"longest time of one entry into mounted code inside the engine"},
	{"callTimeoutMs", millis(limits.CallTimeout), millis(limits.CallTimeoutMin), millis(limits.CallTimeoutMax), "ms",
		"longest time of a whole entry, waiting included; mounting too"},
	{"maxCallTimeoutMs", millis(limits.MaxCallTimeout), millis(limits.CallTimeoutMin), millis(limits.MaxCallTimeoutMax), "ms",
		"what a tool's own timeoutMs may raise that to"},
	{"memoryMB", strconv.Itoa(limits.VMMemoryMB), strconv.Itoa(limits.VMMemoryMBMin), strconv.Itoa(limits.VMMemoryMBMax), "MiB",
		"memory of one mount"},
	{"workerMemoryMB", strconv.Itoa(limits.WorkerMemoryMB), strconv.Itoa(limits.WorkerMemoryMBMin), strconv.Itoa(limits.WorkerMemoryMBMax), "MiB",
		"memory of a worker beyond its size at start (Linux); at least twice that of a mount where nothing is said"},
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

const configText = "The commands with their flags, the configuration of the toolset for whoever builds a program of\n" +
	"their own, and the table of all limits, which nothing but the source changes."

// configPage is docs/reference/config.md.
func configPage(root string, s *surface.Surface) (string, error) {
	var b strings.Builder
	b.WriteString(head("Configuration", configText))
	b.WriteString("\n## Commands\n")
	for _, c := range cli.Reference() {
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n", c.Name, c.Short)
		if c.Long != "" {
			b.WriteString("\n```text\n" + c.Long + "\n```\n")
		}
		if c.Example != "" {
			b.WriteString("\n```sh\n" + unindented(c.Example) + "\n```\n")
		}
		if len(c.Flags) == 0 {
			continue
		}
		b.WriteString("\n| Flag | Default | Range | Meaning |\n|---|---|---|---|\n")
		for _, f := range c.Flags {
			name := "--" + f.Name
			if f.Type != "" {
				name += " " + f.Type
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, cell(f.Default), cell(f.Range), cell(f.Usage))
		}
	}
	b.WriteString("\n## The toolset\n\n`selfmod.Config`; a value out of its range is refused when the toolset starts.\n" +
		"\n| Setting | Default | Range | Unit | Meaning |\n|---|---|---|---|---|\n")
	for _, v := range settings {
		fmt.Fprintf(&b, "| %s | %s | %s to %s | %s | %s |\n", v.name, v.fallback, v.min, v.max, v.unit, v.text)
	}
	table, err := limitsTable(root, s)
	if err != nil {
		return "", err
	}
	b.WriteString(table)
	return b.String(), nil
}

// cell is a text within a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}

// limitsTable is package limits: its groups, names, values and comments.
func limitsTable(root string, s *surface.Surface) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "limits", "limits.go"), nil, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("read limits: %w", err)
	}
	var b strings.Builder
	b.WriteString("\n## Limits\n")
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		if gen.Lparen.IsValid() {
			b.WriteString("\n" + strings.TrimSpace(gen.Doc.Text()) + "\n")
		}
		b.WriteString("\n| Limit | Value | Meaning |\n|---|---|---|\n")
		shared := "" // a comment that speaks of several
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			text := v.Doc.Text()
			if text != "" {
				shared = text
			}
			if text == "" {
				text = v.Comment.Text()
			}
			if text == "" && !gen.Lparen.IsValid() {
				text = gen.Doc.Text()
			}
			for _, n := range v.Names {
				if text == "" && hasWord(shared, n.Name) {
					text = shared
				}
				value := s.Limits[n.Name]
				if strings.ContainsAny(value, "^[") {
					value = "`" + value + "`"
				}
				fmt.Fprintf(&b, "| %s | %s | %s |\n", n.Name, value, cell(text))
			}
		}
	}
	return b.String(), nil
}
