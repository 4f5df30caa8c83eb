// Package document reads cordis.yml documents, lays several of them over each
// other, and edits them without touching what it does not have to.
//
// A document is a YAML list of rows. A [Layer] is a document with a place in the
// order: built-in, the user's, the project's, --config, flags. [Parse] reads one
// layer, [Compose] joins layers to a [Composition]: the rows that run.
//
// # What is promised
//
//   - Every fault has a place: file, line, column, an excerpt with a caret. All
//     faults of the rows of a document are told at once; of YAML itself, the first.
//   - Parse and Compose are pure but for the functions given to Compose, keep no
//     state, and may be called from any goroutine. What they return is not changed
//     afterwards and may be read from any goroutine.
//   - Nothing panics whatever the text is, and everything is bounded (package limits:
//     the Document numbers).
//   - Of every value it is known which layer, line and column gave it, and what it
//     shadowed: [Row.At] and [Row.Explain].
//   - An edit keeps comments, blank lines, order and styles: lines that it has no
//     reason to change are equal byte by byte. What an edit gives is parsed and
//     compared with what was asked before it is returned; what cannot be done safely
//     is refused, and the error says what to do by hand.
//
// # Rows
//
//	id         letters, digits, - and _; unique in the composition
//	name       a Go plugin's name, ./file.js, ./file.ts or ./folder, or include
//	config     what the plugin is given; rows, where the row is a group
//	disabled   true: the row and what is below it is not mounted
//	group      true: the row is a group, its config a list of rows
//	inject     services that the row waits for beside its plugin's own
//	isolate    service: true (a realm of the row's own) or a label that rows share
//	intercept  service: config that the service sees when it is used from here
//	guards     all, or tools that are absent while the row's plugin is not active
//	insert     rows that are appended to the group with this id
//
// A row with an id that an earlier layer has overrides it: the fields given replace
// (config as a whole), null deletes a field, a name beside the id is a guard. A row
// with an id or a name of its own is inserted at the end. A row without an id gets
// one from its name: name, name-2, and so on.
//
// The rows of an include have ids of their own, "include:row"; they are changed by
// the include's patches and not by other rows.
package document
