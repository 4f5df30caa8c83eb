// Package reference holds what of the generated reference the program itself needs:
// the types for writing plugins and the schema of cordis.yml. The files are written by go generate ./... at the root.
package reference

import _ "embed"

// Types is dsh.d.ts: what a plugin can use, for TypeScript and for editors.
//
//go:embed dsh.d.ts
var Types string

// Schema is cordis.schema.json: the JSON Schema of cordis.yml, for editors.
//
//go:embed cordis.schema.json
var Schema string
