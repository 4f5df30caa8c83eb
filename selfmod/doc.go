// Package selfmod is the toolset by which a model sees and changes the runtime
// it runs in: cordis_inspect, cordis_mount and cordis_unmount.
//
// [Plugin] is an ordinary plugin of the composition. It owns a sandbox and a
// group fiber, cordis-dynamic, whose children are the temporary plugins; when it
// is disposed, its tools go first, then every temporary plugin, then the
// sandbox. Nothing is kept: what was mounted ends with it, and only the
// memory of Config says afterwards what that was.
//
// The texts that a model reads stand in .md files beside the code. Every report
// is deterministic and bounded by package limits, says when it was cut, and
// shows names only as package plain makes them safe. A fault that the model can
// mend is the error of a tool result; it says what to do next.
package selfmod
