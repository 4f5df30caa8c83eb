package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/dsh-go/dsh/cli"
	"github.com/dsh-go/dsh/internal/gen/surface"
	"github.com/dsh-go/dsh/plugins/standard"
)

const configText = "The commands with their flags, [cordis.yml](#cordisyml) and the [plugins](#plugins) that its rows name, and\n" +
	"the table of all [limits](#limits), which nothing but the source changes."

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
	b.WriteString(pluginsSection(standard.Catalog(standard.Given{})))
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
