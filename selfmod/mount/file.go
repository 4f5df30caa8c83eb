package mount

// Code is a plugin file as a [Set] takes it.
type Code struct {
	Path  string // as messages show it: ./plugins/greet.js
	Entry string // the one of Files that is the module
	Files map[string]string
	Hash  string // of all of it
}
