// Package keys finds the keys of model providers, and keeps them from showing.
//
// A key comes from the environment (DEEPSEEK_API_KEY, OPENAI_API_KEY,
// ANTHROPIC_API_KEY, each with a …_BASE_URL beside it), else from
// credentials.yml in the home of dsh:
//
//	deepseek:
//	  key: sk-…
//	  baseURL: https://api.deepseek.com   # optional
//
// The file has mode 0600; one that others can read is refused. It is read for
// every request, so that a key may be changed while dsh runs.
//
// A Key prints as "(key)" whatever prints it; only Reveal gives it away. No
// error of this package has a key or a line of the file in it.
package keys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/internal/regular"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/strictyaml"
)

// File is the name of the file in the home of dsh.
const File = "credentials.yml"

// hidden is what a key shows as.
const hidden = "(key)"

// Key is a secret. The zero Key is none.
type Key struct{ secret *string }

// NewKey returns the secret as a Key.
func NewKey(secret string) Key { return Key{&secret} }

// Reveal returns the secret itself, "" for the zero Key.
func (k Key) Reveal() string {
	if k.secret == nil {
		return ""
	}
	return *k.secret
}

// String says (key).
func (k Key) String() string { return hidden }

// GoString says (key).
func (k Key) GoString() string { return hidden }

// Format says (key), for every verb.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalText says (key); JSON and YAML use it.
func (k Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue says (key).
func (k Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// Credential is what it takes to speak to a provider.
type Credential struct {
	Key     Key
	BaseURL string // "" is the provider's own
	From    string // where the key was found, for a person: a variable's name or the file's
	URLFrom string // the same of the base URL
}

// Usable reports whether the key has only characters that a key can have: those of
// ASCII that show, at least one.
func (k Key) Usable() bool {
	s := k.Reveal()
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ShownURL returns a base URL as a person may see it: what may be a secret in it, a
// name, a password and a query, shows as xxxxx.
func ShownURL(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "(not usable)" // and the error would show it
	}
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	if u.RawQuery != "" {
		u.RawQuery = "xxxxx"
	}
	if u.Opaque != "" {
		u.Opaque = "xxxxx"
	}
	return u.String()
}

// Store looks for credentials.
type Store struct {
	// Home is the folder of credentials.yml; "" means that there is none.
	Home string
	// Env looks up a variable; nil is os.LookupEnv.
	Env func(string) (string, bool)
}

// Variable is the name of the variable that has a provider's key, such as
// DEEPSEEK_API_KEY; the one with the base URL ends in _BASE_URL.
func Variable(provider string) string { return variable(provider) + "_API_KEY" }

// URLVariable is the name of the variable that has a provider's base URL.
func URLVariable(provider string) string { return variable(provider) + "_BASE_URL" }

// Variables returns the names of the variables that hold secrets of the
// providers: what must be taken out of a child's environment.
func Variables(providers ...string) []string {
	var names []string
	for _, p := range providers {
		names = append(names, Variable(p))
	}
	return names
}

func variable(provider string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(provider))
}

func (s Store) env(name string) string {
	look := s.Env
	if look == nil {
		look = os.LookupEnv
	}
	v, _ := look(name)
	return strings.TrimSpace(v)
}

func (s Store) path() string { return filepath.Join(s.Home, File) }

// Find returns the credential of a provider. The environment goes before the
// file, for the key and for the base URL each. The error is a llm.Failure:
// MISSING_CREDENTIAL says where a key may be put, INVALID_CREDENTIAL what is
// wrong with the one that is there.
func (s Store) Find(provider string) (Credential, error) {
	c := Credential{BaseURL: s.env(URLVariable(provider))}
	if c.BaseURL != "" {
		c.URLFrom = URLVariable(provider)
	}
	if key := s.env(Variable(provider)); key != "" {
		c.Key, c.From = NewKey(key), Variable(provider)
	}
	if c.From == "" || c.BaseURL == "" {
		all, err := s.read()
		if err != nil && c.From == "" {
			return Credential{}, llm.AsFailure(err, llm.CodeInvalidCredential)
		}
		in := all[provider] // nothing when the file cannot be used, and the variable is enough
		if c.From == "" && in.Key != "" {
			c.Key, c.From = NewKey(in.Key), s.path()
		}
		if c.BaseURL == "" && in.BaseURL != "" {
			c.BaseURL, c.URLFrom = in.BaseURL, s.path()
		}
	}
	if c.From == "" {
		name := plain.Name(provider)
		return c, llm.Fail(llm.CodeMissingCredential, "there is no key for %s; set %s, or put one into %s with `dsh auth set %s`; a server of your own, which %s names, needs none",
			name, Variable(provider), s.path(), name, URLVariable(provider))
	}
	if !c.Key.Usable() {
		return Credential{}, llm.Fail(llm.CodeInvalidCredential, "the key for %s in %s has characters that no key has; copy it again", plain.Name(provider), c.From)
	}
	return c, nil
}

// entry is one provider's part of the file.
type entry struct {
	Key     string `yaml:"key"`
	BaseURL string `yaml:"baseURL,omitempty"`
}

// read returns what is in the file; nothing when there is none.
func (s Store) read() (map[string]entry, error) {
	if s.Home == "" {
		return nil, nil
	}
	f, info, err := regular.Open(s.path(), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, regular.ErrIrregular) {
		return nil, fmt.Errorf("read credentials: %w; remove it, and put the keys in again with dsh auth", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	defer func() { _ = f.Close() }()
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("read credentials: %s has mode %04o, so others can read the keys; make it private with: chmod 600 %s", s.path(), mode, s.path())
	}
	text, err := io.ReadAll(io.LimitReader(f, limits.LLMCredentials+1))
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	if len(text) > limits.LLMCredentials {
		return nil, fmt.Errorf("read credentials: %s has more than %d bytes", s.path(), limits.LLMCredentials)
	}
	return parse(s.path(), text)
}

// parse reads the file. What it says of a fault has a place, never the text.
func parse(path string, text []byte) (map[string]entry, error) {
	all := map[string]entry{}
	var fault *strictyaml.Fault
	if errors.As(strictyaml.Decode(text, &all), &fault) {
		return nil, fmt.Errorf("read credentials: %s, line %d: it must be a map of provider to key and baseURL, such as\ndeepseek:\n  key: sk-…", path, fault.Line)
	}
	return all, nil
}

// Providers returns the providers that the file has a key for, sorted.
func (s Store) Providers() ([]string, error) {
	all, err := s.read()
	if err != nil {
		return nil, llm.AsFailure(err, llm.CodeInvalidCredential)
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// Set writes a provider's key into the file, and its base URL when it is not "";
// an empty key removes the provider. The file is replaced in one step, with mode
// 0600; a file that cannot be read is not overwritten. Comments in it are lost.
func (s Store) Set(provider string, key Key, baseURL string) error {
	if s.Home == "" {
		return errors.New("write credentials: there is no home folder for them")
	}
	all, err := s.read()
	if err != nil {
		return err
	}
	if all == nil {
		all = map[string]entry{}
	}
	if key.Reveal() == "" {
		delete(all, provider)
	} else {
		all[provider] = entry{key.Reveal(), baseURL}
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return errors.New("write credentials: a name or a key cannot be written as YAML")
	}
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err := atomicfile.Write(s.path(), text, 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}
