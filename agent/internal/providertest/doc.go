// Package providertest holds the loop against servers that behave badly: slow, stalled
// and cut streams, half of a rune, errors inside an answer, refusals with and without
// a time to wait, answers that are none, calls that cannot be made, two hundred of
// them, and a model that never comes to an end. Each case runs over both wire formats,
// and after each the agent does its next turn. What was sent is held against the log
// (package agenttest). It has tests only.
package providertest
