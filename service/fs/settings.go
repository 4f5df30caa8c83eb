package fs

// Settings are the service's config in a cordis.yml document.
type Settings struct {
	Roots         []string `json:"roots" format:"path" max:"FSRoots" doc:"Folders that may be read and written. Where neither roots nor readOnlyRoots are given it is the folder that dsh works in, unless that is / or your home folder."`
	ReadOnlyRoots []string `json:"readOnlyRoots" format:"path" max:"FSRoots" doc:"Folders that may only be read."`
	Denied        []string `json:"denied" format:"path" max:"FSRoots" doc:"Files and folders that are never reached, whether they are there or not. dsh's own folder is always among them."`
}

// Config is what the settings say. Paths have to be absolute.
func (s Settings) Config() Config {
	return Config{Roots: s.Roots, ReadOnly: s.ReadOnlyRoots, Denied: s.Denied}
}
