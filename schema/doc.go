// Package schema compiles the schemas that authors write for a tool's parameters
// and output into one canonical form, which is advertised and enforced.
package schema
