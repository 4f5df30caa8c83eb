package file

// Settings are the plugin's config in a cordis.yml document.
type Settings struct {
	Unread bool `json:"unread" default:"false" doc:"Let the model change files that it has not read."`
}
