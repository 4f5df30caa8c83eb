package bash

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
)

// Settings are the service's config in a cordis.yml document.
type Settings struct {
	Dir     string   `json:"dir" format:"path" doc:"The folder in which commands start. Where it is not given it is the one that dsh works in."`
	PassEnv []string `json:"passEnv" max:"BashPassEnv" doc:"Names of environment variables that commands get although they look like those of credentials, such as GITHUB_TOKEN."`
}

// CheckSettings says what is wrong beyond the types.
func (s Settings) CheckSettings(fault func(path []string, message string)) {
	for i, name := range s.PassEnv {
		if name == "" || strings.ContainsAny(name, "=*\x00") {
			fault([]string{"passEnv", strconv.Itoa(i)}, fmt.Sprintf("%q is no name of a variable: give the name alone, such as GITHUB_TOKEN", plain.Name(name)))
		}
	}
}

// Config is what the settings say. Dir has to be absolute, or empty.
func (s Settings) Config() Config { return Config{Dir: s.Dir, PassEnv: s.PassEnv} }
