package command

import (
	"github.com/spf13/pflag"

	"github.com/dsh-go/dsh/permission"
)

// PermissionOptions are the flags of what plugins and their tools may do.
type PermissionOptions struct {
	mode        string
	allow, deny []string
}

// Flags adds the flags, with the mode that there is without them.
func (o *PermissionOptions) Flags(f *pflag.FlagSet, mode permission.Mode) {
	f.StringVar(&o.mode, "permission", string(mode), "what may happen: full, read-only, or ask and auto-edit, where what would be asked about is denied, since there is nobody to ask")
	f.StringArrayVar(&o.allow, "allow", nil, "`rule` for what is allowed without a question, such as 'bash(go test *)' or 'edit(src/**)'; may be repeated")
	f.StringArrayVar(&o.deny, "deny", nil, "`rule` for what is denied; beats --allow; may be repeated")
}

// Put makes the mode a part of the last layer, if it was given, and returns the rules,
// which count beside those of the layers.
func (o *PermissionOptions) Put(l *LayerOptions, f *pflag.FlagSet) (allow, deny []permission.Rule, err error) {
	mode, err := ParseMode(o.mode)
	if err != nil {
		return nil, nil, err
	}
	if f.Changed("permission") {
		if err := l.Put("--permission", "permission", []string{"config", "mode"}, string(mode)); err != nil {
			return nil, nil, err
		}
	}
	return ParseRules(o.allow, o.deny)
}

// ParseMode reads --permission. Its error is one of usage.
func ParseMode(text string) (permission.Mode, error) {
	mode, err := permission.ParseMode(text)
	if err != nil {
		return "", Usagef("--permission: %w", err)
	}
	return mode, nil
}

// ParseRules reads --allow and --deny. Its error is one of usage.
func ParseRules(allow, deny []string) (allowed, denied []permission.Rule, err error) {
	if allowed, err = permission.ParseRules(allow); err != nil {
		return nil, nil, Usagef("--allow: %w", err)
	}
	if denied, err = permission.ParseRules(deny); err != nil {
		return nil, nil, Usagef("--deny: %w", err)
	}
	return allowed, denied, nil
}
