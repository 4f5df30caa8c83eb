package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/llm/providers"
	"github.com/dsh-go/dsh/serve/terminal"
)

func newAuth(s command.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "auth",
		SuggestionsMinimumDistance: 2,
		Short:                      "Keep, remove and list keys of model providers",
		Long: `Keep, remove and list keys of model providers in $DSH_HOME/credentials.yml
(default ~/.dsh), which only you can read (mode 0600). A key is read from the
terminal, where it does not show, or from standard input; it is never printed, never
in a session, and no command that a model runs gets it. The environment goes first:
DEEPSEEK_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY.`,
		Example: `  dsh auth set deepseek
  dsh auth set openai --base-url http://127.0.0.1:8000/v1 < key.txt
  dsh auth list`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("say which command: set, unset or list")
			}
			return command.Unknown(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newAuthSet(s), newAuthUnset(s), newAuthList(s))
	return cmd
}

// providerArg takes one argument, a provider that has a key.
func providerArg(_ *cobra.Command, args []string) error {
	names := strings.Join(providers.WithKey(), ", ")
	if len(args) != 1 {
		return command.Usagef("takes one provider (%s), got %s; a key is never an argument, where others could see it", names, count(len(args), "argument"))
	}
	if !slices.Contains(providers.WithKey(), args[0]) {
		return command.Usagef("there is no provider %q with a key; choose among %s", plain.Name(args[0]), names)
	}
	return nil
}

func newAuthSet(s command.Streams) *cobra.Command {
	var baseURL string
	cmd := &cobra.Command{
		Use:   "set PROVIDER",
		Short: "Keep the key of a provider",
		Args:  providerArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			store := keyStore()
			if store.Home == "" {
				return errNoHome
			}
			if !cmd.Flags().Changed("base-url") {
				baseURL = storedURL(store.Home, args[0])
			}
			if err := providers.CheckURL(args[0], baseURL); err != nil {
				where := "--base-url"
				if !cmd.Flags().Changed("base-url") {
					where = "give another --base-url than the one in " + filepath.Join(store.Home, keys.File)
				}
				return command.Usagef("%s: %w", where, err)
			}
			key, err := readKey(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			if err := store.Set(args[0], key, baseURL); err != nil {
				return err
			}
			fmt.Fprintf(s.Err, "dsh: the key of %s is in %s\n", args[0], filepath.Join(store.Home, keys.File))
			if _, ok := os.LookupEnv(keys.Variable(args[0])); ok {
				fmt.Fprintf(s.Err, "dsh: %s is set and goes first\n", keys.Variable(args[0]))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&baseURL, "base-url", "", "the `URL` of a server that speaks the provider's API (default the one that is kept, else the provider's own)")
	return cmd
}

// storedURL is the base URL that the file has now.
func storedURL(home, provider string) string {
	onlyFile := keys.Store{Home: home, Env: func(string) (string, bool) { return "", false }}
	c, _ := onlyFile.Find(provider) // of a file that cannot be read Set will speak
	return c.BaseURL
}

// readKey reads a key from the terminal without echo, or from standard input.
func readKey(ctx context.Context, s command.Streams, provider string) (keys.Key, error) {
	var text []byte
	var err error
	if file, ok := s.In.(*os.File); ok && terminal.Is(file) {
		fmt.Fprintf(s.Err, "Key of %s (it does not show): ", provider)
		text, err = readHidden(ctx, int(file.Fd()))
		fmt.Fprintln(s.Err)
	} else {
		text, err = readAll(ctx, s.In, limits.LLMCredentials+1)
	}
	if err != nil {
		return keys.Key{}, fmt.Errorf("read key: %w", err)
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return keys.Key{}, command.Usagef("no key came in; type it, or give it on standard input: dsh auth set %s < file", provider)
	case len(text) > limits.LLMCredentials || bytes.ContainsAny(text, "\n\r \t"):
		return keys.Key{}, command.Usagef("what came in is no key: one word was expected, without spaces")
	}
	key := keys.NewKey(string(text))
	if !key.Usable() {
		return keys.Key{}, command.Usagef("what came in has characters that no key has, such as control characters or letters beyond ASCII; copy it again")
	}
	return key, nil
}

// readHidden reads a line without echo. Where ctx ends first the terminal is as it
// was before; the read goes on until the program ends.
func readHidden(ctx context.Context, fd int) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fmt.Errorf("look at terminal: %w", err)
	}
	done := begin(func() ([]byte, error) { return term.ReadPassword(fd) })
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, errors.Join(errInterrupted, term.Restore(fd, before))
	}
}

func newAuthUnset(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "unset PROVIDER",
		Short: "Remove the key of a provider",
		Args:  providerArg,
		RunE: func(_ *cobra.Command, args []string) error {
			store := keyStore()
			if store.Home == "" {
				return errNoHome
			}
			there, err := store.Providers()
			if err != nil {
				return err
			}
			if !slices.Contains(there, args[0]) {
				fmt.Fprintf(s.Err, "dsh: there is no key of %s in %s\n", args[0], filepath.Join(store.Home, keys.File))
				return nil
			}
			return store.Set(args[0], keys.Key{}, "")
		},
	}
}

func newAuthList(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the providers with a key, and where it is; never the key",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store := keyStore()
			for _, name := range providers.WithKey() {
				c, err := store.Find(name)
				if err != nil {
					continue
				}
				if err := command.PrintText(s.Out, name+"\t"+c.From); err != nil {
					return err
				}
			}
			if store.Home == "" {
				return nil
			}
			_, err := store.Providers() // a file that cannot be read is told
			return err
		},
	}
}
