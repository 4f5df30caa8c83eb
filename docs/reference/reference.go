// Package reference holds what of the generated reference the program itself needs:
// the types for writing plugins. The files are written by go generate ./... at the root.
package reference

import _ "embed"

// Types is dsh.d.ts: what a plugin can use, for TypeScript and for editors.
//
//go:embed dsh.d.ts
var Types string
