package permission

import "strconv"

// Settings are the config of a policy in a cordis.yml document.
type Settings struct {
	Mode  string   `json:"mode" enum:"ask,auto-edit,full,read-only" doc:"What may happen without a question: ask (reading), auto-edit (edits within the roots, too), full (everything), read-only (reading; the rest is denied without a question)."`
	Allow []string `json:"allow" max:"PermissionRules" doc:"Rules for what is allowed without a question, such as bash(go test *) or edit(src/**)."`
	Deny  []string `json:"deny" max:"PermissionRules" doc:"Rules for what is denied; they beat allow."`
}

// CheckSettings says what is wrong beyond the types: each rule that is none.
func (s Settings) CheckSettings(fault func(path []string, message string)) {
	check := func(field string, rules []string) {
		for i, text := range rules {
			if _, err := ParseRule(text); err != nil {
				fault([]string{field, strconv.Itoa(i)}, err.Error())
			}
		}
	}
	check("allow", s.Allow)
	check("deny", s.Deny)
}

// Config is what the settings say.
func (s Settings) Config() (Config, error) {
	allow, err := ParseRules(s.Allow)
	if err != nil {
		return Config{}, err
	}
	deny, err := ParseRules(s.Deny)
	if err != nil {
		return Config{}, err
	}
	return Config{Mode: Mode(s.Mode), Allow: allow, Deny: deny}, nil
}
