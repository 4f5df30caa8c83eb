package agent

import "github.com/dsh-go/dsh/llm"

// Settings are the config of the agents in a cordis.yml document.
type Settings struct {
	MaxParallel int   `json:"maxParallel" min:"1" max:"AgentParallelMax" default:"AgentParallel" doc:"How many tool calls of one answer run at the same time."`
	Retries     int   `json:"retries" min:"0" max:"AgentRetriesMax" default:"LLMRetries" doc:"How often a request to a model that failed is sent again in the same step."`
	MaxSteps    int   `json:"maxSteps" min:"0" max:"AgentStepsMax" default:"0" doc:"Ends a turn that would have more steps; 0 is no limit. A flag beats it."`
	MaxTokens   int64 `json:"maxTokens" min:"0" max:"AgentTokensMax" default:"0" doc:"How many tokens a session may use in all its requests; beyond them a turn ends. 0 is no limit. A flag beats it."`
}

// Config is what the settings say.
func (s Settings) Config() Config {
	retry := llm.DefaultRetry()
	if retry.Max = s.Retries; retry.Max == 0 {
		retry.Max = -1
	}
	return Config{MaxParallel: s.MaxParallel, Retry: retry, MaxSteps: s.MaxSteps, MaxTokens: s.MaxTokens}
}
