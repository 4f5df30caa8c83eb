package bash

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
)

// Settings are the service's config in a cordis.yml document.
type Settings struct {
	Dir     string         `json:"dir" format:"path" doc:"The folder in which commands start. Where it is not given it is the one that dsh works in."`
	PassEnv []VariableName `json:"passEnv" max:"BashPassEnv" doc:"Names of environment variables that commands get although they look like those of credentials, such as GITHUB_TOKEN."`
}

// VariableName is the name of an environment variable.
type VariableName string

// CheckText says what is wrong with it.
func (n VariableName) CheckText() error {
	if n == "" || strings.ContainsAny(string(n), "=*\x00") {
		return fmt.Errorf("%q is no name of a variable: give the name alone, such as GITHUB_TOKEN", plain.Name(string(n)))
	}
	return nil
}

// Config is what the settings say. Dir has to be absolute, or empty.
func (s Settings) Config() Config {
	cfg := Config{Dir: s.Dir}
	for _, n := range s.PassEnv {
		cfg.PassEnv = append(cfg.PassEnv, string(n))
	}
	return cfg
}
