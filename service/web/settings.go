package web

// Settings are the service's config in a cordis.yml document.
type Settings struct {
	AllowPrivate   bool   `json:"allowPrivate" default:"false" doc:"Fetch private, loopback and link-local addresses, too."`
	Proxy          string `json:"proxy" max:"WebURL" doc:"The URL of a proxy for all fetches; none where it is not given, whatever the environment says."`
	FetchProvider  string `json:"fetchProvider" max:"Name" doc:"The id of the provider that fetches where a request names none; needed where there are several."`
	SearchProvider string `json:"searchProvider" max:"Name" doc:"The id of the provider that searches where a request names none; needed where there are several."`
}

// CheckSettings says what is wrong beyond the types.
func (s Settings) CheckSettings(fault func(path []string, message string)) {
	if s.Proxy == "" {
		return
	}
	if _, err := proxyURL(s.Proxy); err != nil {
		fault([]string{"proxy"}, err.Error())
	}
}

// Config is what the settings say.
func (s Settings) Config() Config {
	return Config{AllowPrivate: s.AllowPrivate, Proxy: s.Proxy, FetchProvider: s.FetchProvider, SearchProvider: s.SearchProvider}
}
