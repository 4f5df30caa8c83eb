package command

import (
	"github.com/spf13/pflag"

	"github.com/dsh-go/dsh/cordis"
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

// Plugin is the policy that the flags say.
func (o *PermissionOptions) Plugin() (*cordis.Plugin, error) {
	var cfg permission.Config
	var err error
	if cfg.Mode, err = permission.ParseMode(o.mode); err != nil {
		return nil, Usagef("--permission: %w", err)
	}
	if cfg.Allow, err = permission.ParseRules(o.allow); err != nil {
		return nil, Usagef("--allow: %w", err)
	}
	if cfg.Deny, err = permission.ParseRules(o.deny); err != nil {
		return nil, Usagef("--deny: %w", err)
	}
	return permission.Plugin(cfg), nil
}
