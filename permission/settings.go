package permission

// Settings are the config of a policy in a cordis.yml document.
type Settings struct {
	Mode  string     `json:"mode" enum:"ask,auto-edit,full,read-only" doc:"What may happen without a question: ask (reading), auto-edit (edits within the roots, too), full (everything), read-only (reading; the rest is denied without a question)."`
	Allow []RuleText `json:"allow" max:"PermissionRules" doc:"Rules for what is allowed without a question, such as bash(go test *) or edit(src/**)."`
	Deny  []RuleText `json:"deny" max:"PermissionRules" doc:"Rules for what is denied; they beat allow."`
}

// RuleText is a rule as [ParseRule] reads it.
type RuleText string

// CheckText says what is wrong with it.
func (r RuleText) CheckText() error {
	_, err := ParseRule(string(r))
	return err
}

// Config is what the settings say.
func (s Settings) Config() (cfg Config, err error) {
	cfg.Mode = Mode(s.Mode)
	if cfg.Allow, err = parsed(s.Allow); err == nil {
		cfg.Deny, err = parsed(s.Deny)
	}
	return cfg, err
}

func parsed(texts []RuleText) ([]Rule, error) {
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = string(t)
	}
	return ParseRules(list)
}
