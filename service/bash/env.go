package bash

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// scrubbed are the variables that no command gets unless Config.PassEnv names
// them, beside those that end in one of scrubbedEnds, or are such an end without
// its underscore. A * at the end stands for anything; case does not matter.
var scrubbed = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_KEY", "AZURE_OPENAI_KEY",
	"DEEPSEEK_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
	"MISTRAL_API_KEY", "GROQ_API_KEY", "CEREBRAS_API_KEY", "XAI_API_KEY", "OPENROUTER_API_KEY",
	"MOONSHOT_API_KEY", "DASHSCOPE_API_KEY", "ZHIPUAI_API_KEY", "HF_TOKEN",
	"AWS_*", "GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT", "GITLAB_TOKEN", "NPM_TOKEN",
	"PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH", "DOCKER_AUTH_CONFIG",
	"DSH_*", // our own settings are not for commands
}

var scrubbedEnds = []string{"_TOKEN", "_SECRET", "_PASSWORD", "_API_KEY"}

// forced is what every command gets: output for a reader that is no terminal.
var forced = map[string]string{"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}

// secret tells whether a variable is kept from commands.
func secret(name string) bool {
	name = strings.ToUpper(name)
	for _, end := range scrubbedEnds {
		if strings.HasSuffix(name, end) || name == end[1:] {
			return true
		}
	}
	return slices.ContainsFunc(scrubbed, func(pattern string) bool {
		start, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, start)
	})
}

// environment is what a command gets: the ambient variables without secrets, then
// what is forced, then what the request sets.
func environment(ambient, pass []string, dir string, set map[string]string) []string {
	vars := map[string]string{}
	for _, entry := range ambient {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || secret(name) && !slices.ContainsFunc(pass, func(p string) bool { return sameName(p, name) }) {
			continue
		}
		vars[name] = value
	}
	maps.Copy(vars, forced)
	vars["PWD"] = dir
	maps.Copy(vars, set)
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

func sameName(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
