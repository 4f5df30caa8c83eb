package kv

// Settings are the service's config in a cordis.yml document.
type Settings struct {
	Dir string `json:"dir" format:"path" doc:"A folder with a file for each plugin, made if it is not there. Where it is not given everything is kept in memory, and gone with dsh."`
}

// Config is what the settings say. Dir has to be absolute, or empty.
func (s Settings) Config() Config { return Config{Dir: s.Dir} }
