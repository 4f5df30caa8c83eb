// Package log is the service through which plugins write to the log of the
// program, package cordis's [cordis.Logger]: its ring and its exporters.
//
// A line bears the name of the plugin's logger, and, of a temporary plugin, its
// id as attribute mount. Text is made safe for terminals and bounded by the
// constants Log… of package limits: messages and fields that are longer are cut,
// and say so. Of each run of a plugin at most limits.LogRate lines a second pass,
// after a burst of limits.LogBurst. The number of the others is logged, with the
// next line that passes or when the run ends.
//
// Logging never fails and never waits. Everything is safe for concurrent use;
// nothing starts a goroutine.
package log
