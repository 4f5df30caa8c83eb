package work

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/llm/providers"
)

// provider is what dsh models says of one.
type provider struct {
	Name    string  `json:"provider"`
	Ready   bool    `json:"ready"`             // a request can be made
	Default bool    `json:"default,omitempty"` // dsh run uses it without --model
	Key     string  `json:"key"`               // where the key was found, or what is missing; never the key
	BaseURL string  `json:"baseURL,omitempty"`
	Models  []model `json:"models"`
}

// model is what is known of one.
type model struct {
	Name          string   `json:"name"`
	ContextWindow int      `json:"contextWindow,omitempty"`
	Images        bool     `json:"images,omitempty"`
	Efforts       []string `json:"efforts,omitempty"`
}

func newModels(s command.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the providers, whether there is a key, and the models that are known",
		Long: `List the providers of models, whether there is a key for each (never the key),
and the models that are known by name. A server of your own that speaks the API of
OpenAI is named by OPENAI_BASE_URL; it takes any name of a model, and needs no key.`,
		Example: `  dsh models
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 dsh run --model openai/llama3 "say hello"`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := listProviders(keyStore())
			if err != nil {
				return err
			}
			if !asJSON {
				return printProviders(s.Out, list)
			}
			for _, p := range list {
				if err := command.PrintJSON(s.Out, p); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line, one for each provider")
	return cmd
}

func listProviders(store keys.Store) ([]provider, error) {
	preferred := providers.Default(store)
	var list []provider
	for _, name := range providers.Names() {
		p := provider{Name: name, Default: name == preferred, Models: []model{}}
		switch name {
		case providers.Script:
			p.Ready, p.Key = true, "needs no key: --model script/FILE plays a scripted conversation"
		case providers.Manual:
			p.Ready, p.Key = true, "needs no key: --model manual lets you play the model"
		default:
			c, err := store.Find(name)
			missing := new(llm.Failure)
			switch {
			case err == nil:
				p.Ready, p.Key = true, "key from "+c.From
			case errors.As(err, &missing) && missing.Code == llm.CodeMissingCredential && c.BaseURL != "":
				p.Ready, p.Key = true, "no key, but a server of your own"
			case errors.As(err, &missing) && missing.Code == llm.CodeMissingCredential:
				p.Key = fmt.Sprintf("no key: set %s, or dsh auth set %s", keys.Variable(name), name)
			default:
				p.Key = plain.Error(err.Error())
			}
			if c.BaseURL != "" {
				p.BaseURL = keys.ShownURL(c.BaseURL)
			}
			adapter, err := providers.New(name, providers.Options{Keys: store})
			if err != nil {
				p.Ready, p.Key = false, plain.Error(err.Error())
				break
			}
			for _, m := range adapter.Models() {
				p.Models = append(p.Models, model{m.Name, m.ContextWindow, m.Images, m.Efforts})
			}
		}
		list = append(list, p)
	}
	return list, nil
}

func printProviders(out io.Writer, list []provider) error {
	var b strings.Builder
	told := map[string]string{} // what is wrong with the file is said once
	for _, p := range list {
		if first, ok := told[p.Key]; ok {
			p.Key = "as for " + first
		} else if !p.Ready {
			told[p.Key] = p.Name
		}
		mark := ""
		if p.Default {
			mark = " (default)"
		}
		fmt.Fprintf(&b, "%s%s: %s\n", p.Name, mark, p.Key)
		if p.BaseURL != "" {
			fmt.Fprintf(&b, "  server: %s\n", plain.Line(p.BaseURL, limits.Preview))
		}
		for _, m := range p.Models {
			var more []string
			if m.ContextWindow > 0 {
				more = append(more, fmt.Sprintf("%d tokens of context", m.ContextWindow))
			}
			if m.Images {
				more = append(more, "images")
			}
			if len(m.Efforts) > 0 {
				more = append(more, "effort "+strings.Join(m.Efforts, ", "))
			}
			fmt.Fprintf(&b, "  %s/%s", p.Name, m.Name)
			if len(more) > 0 {
				b.WriteString("  (" + strings.Join(more, "; ") + ")")
			}
			b.WriteString("\n")
		}
	}
	return command.PrintText(out, b.String())
}

// errNoModel says how a model is chosen.
var errNoModel = errors.New(`no model is chosen and no provider has a key. Do one of these:
  dsh auth set deepseek               keep a key (openai and anthropic too), or set DEEPSEEK_API_KEY
  dsh run --model openai/NAME …       with OPENAI_BASE_URL, a server of your own that needs no key
  dsh run --model manual …            play the model yourself
  dsh run --model script/FILE …       play a scripted conversation`)

// chooseModel reads provider/name; an empty text is DSH_MODEL, else the first
// provider that has a key.
func chooseModel(text, env string, store keys.Store) (llm.Config, error) {
	from := "--model"
	if text == "" {
		text, from = env, "DSH_MODEL"
	}
	if text == "" {
		p := providers.Default(store)
		if p == "" {
			return llm.Config{}, command.AsUsage(errNoModel)
		}
		return llm.Config{Provider: p}, nil
	}
	name, model, _ := strings.Cut(text, "/")
	if !slices.Contains(providers.Names(), name) {
		return llm.Config{}, command.Usagef("%s %q: there is no provider %q; write provider/name with one of %s",
			from, plain.Line(text, limits.Name), plain.Name(name), strings.Join(providers.Names(), ", "))
	}
	if name == providers.Script && model == "" {
		return llm.Config{}, command.Usagef("%s: script needs a file: script/conversation.yml", from)
	}
	return llm.Config{Provider: name, Model: model}, nil
}
