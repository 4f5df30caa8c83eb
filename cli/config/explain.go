package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
)

func newExplain(s command.Streams, o Options) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "explain ID[.path]",
		Short: "Say where a row or a value comes from, and what it shadowed",
		Long: `Say where a row or a value comes from: the layer, the file and the line that gave it,
and what it shadowed there. The path is as --set has it.`,
		Example: "  dsh config explain permission.config.mode\n  dsh config explain tool-cordis.config.vmTimeoutMs --of mcp",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.Usagef("takes one ID[.path], got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.read(cmd, o, false, asWritten)
			if err != nil {
				return err
			}
			text, err := explain(r, args[0])
			if err != nil {
				if of := elsewhere(o, f.of, args[0]); of != "" {
					return command.Usagef("%w; the composition of dsh %s has this one: --of %s", err, of, of)
				}
				return err
			}
			return command.PrintText(s.Out, text)
		},
	}
	f.add(cmd)
	return cmd
}

// elsewhere names the other built-in composition that has the row; "": none has it.
func elsewhere(o Options, of, what string) string {
	id, _, _ := strings.Cut(what, ".")
	for _, name := range []string{"run", "mcp"} {
		doc, _ := document.Parse(o.Builtin[name])
		if name == of || doc == nil {
			continue
		}
		composed, _ := document.Compose([]*document.Document{doc}, document.Options{})
		if slices.Contains(ids(composed.Rows), id) {
			return name
		}
	}
	return ""
}

// explain says where a row, or a value of it, comes from.
func explain(r *composition.Reading, what string) (string, error) {
	id, rest, _ := strings.Cut(what, ".")
	row, err := rowOf(r, id)
	if err != nil {
		return "", err
	}
	var path []string
	if rest != "" {
		path = strings.Split(rest, ".")
	}
	var b strings.Builder
	if len(path) == 0 {
		writeRows(&b, []document.Row{row}, "")
	} else if v, ok := valueOf(row, path); ok {
		fmt.Fprintln(&b, plain.Line(hidden(path[len(path)-1], v).String(), limits.Preview))
	} else {
		fmt.Fprintln(&b, "no document gives it")
	}
	credential := len(path) > 0 && document.Credential(snake(path[len(path)-1]))
	origins := row.Explain(path...)
	if len(origins) == 0 {
		at := row.At(path...)
		fmt.Fprintf(&b, "the nearest that is given is in %s, %s:%d\n", at.Layer.Kind, short(at.Layer.Name), at.Line)
	}
	for i, at := range origins {
		verb := "given by"
		if i > 0 {
			verb = "shadowed"
			if at.Value != "" && !(credential && !strings.Contains(at.Value, "${env:")) {
				verb += " " + at.Value
			}
			verb += " of"
		}
		fmt.Fprintf(&b, "  %s %s, %s:%d\n", verb, layerName(at.Layer), short(at.Layer.Name), at.Line)
	}
	return b.String(), nil
}

func layerName(l *document.Layer) string { return "the layer " + l.Kind.String() }

// valueOf is a value of a row; false: it has none there.
func valueOf(row document.Row, path []string) (lossless.Value, bool) {
	var v lossless.Value
	switch path[0] {
	case "config":
		v = row.Config
	case "disabled":
		v = lossless.Boolean(row.Disabled)
	case "id":
		v = lossless.Str(row.ID)
	case "name":
		v = lossless.Str(row.Name)
	default:
		return v, false
	}
	for _, key := range path[1:] {
		var ok bool
		if v.Kind() == lossless.Array {
			i, err := strconv.Atoi(key)
			if ok = err == nil && i >= 0 && i < v.Len(); ok {
				v = v.At(i)
			}
		} else {
			v, ok = v.Get(key)
		}
		if !ok {
			return v, false
		}
	}
	return v, !v.IsNull()
}
