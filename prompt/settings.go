package prompt

// Settings are the plugin's config in a cordis.yml document.
type Settings struct {
	Persona *string `json:"persona" max:"PromptText" doc:"What the model is told of its work, instead of the built-in text; a template as any section of the prompt. The empty text leaves it out."`
}
