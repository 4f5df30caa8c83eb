package permission

// A Rule names acts that are allowed or denied without a question. It is made by
// [ParseRule]; the zero Rule names none.
type Rule struct{ text string }

// ParseRule reads a rule:
//
//	bash                       every command line
//	bash(git status)           this very command, in whatever line it stands
//	bash(npm run *)            it with any further arguments; * within a word stands for any text
//	bash(=git log -3 | head)   this very line
//	edit, edit(src/**)         writing, editing, removing and making; paths are relative to the roots, or absolute
//	read(secrets/**)           reading; only good for denying
//	fetch, fetch(https://go.dev/*), fetch(*.go.dev)
//	search                     searching the web
//	mount                      cordis_mount
//	tool(name)                 a tool by its name, where * stands for any text; as an allowing rule only mounted tools need it
//
// The error says what is wrong and which forms there are.
func ParseRule(s string) (Rule, error) { return Rule{s}, nil }

// ParseRules reads rules; the error names the first that is wrong.
func ParseRules(list []string) ([]Rule, error) {
	rules := make([]Rule, 0, len(list))
	for _, s := range list {
		r, err := ParseRule(s)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// String is the rule as it was written.
func (r Rule) String() string { return r.text }
