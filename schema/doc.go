// Package schema compiles the schemas that authors write for a tool's parameters
// and output into one canonical form, and validates values against it. What is
// advertised ([Schema.JSON]) is exactly what is enforced ([Schema.Validate]).
//
// # What authors may write
//
// Two dialects, in both places ([Parameters], [Output]), mixed at any depth: the DSL,
// a map of property name to node, and JSON Schema, {type: 'object', properties,
// required}. A node has these keywords and no others:
//
//	type                  string number integer boolean null object array; json (or no type and no oneOf): any JSON
//	oneOf                 two or more nodes, of which exactly one must match; no type beside it
//	properties            of objects: a map of name to node
//	required              of a property: true or false (false is the default);
//	                      of an object: a list of declared names; both forms add up
//	additionalProperties  of objects: true or false; absent means true, at the root too
//	items                 of arrays: the node of every item; absent means any JSON
//	enum, const           of scalar types; without a type, the type is theirs when it is one
//	description title default examples
//
// A list of types beside nothing but annotations is read as oneOf. Everything
// else is refused with its place, what is allowed, and what to do; all violations
// are reported together, up to limits.Violations.
//
// # Decisions
//
//   - The root of parameters is the wrapper if and only if its type is the string
//     "object". So a parameter named "type" is possible in the direct map, since there
//     its value is a node. additionalProperties: false is accepted at the root and
//     enforced.
//   - An output is a map of properties when it has no type and no oneOf that could be
//     keywords and all its values are objects, unless it has only default and examples.
//   - additionalProperties: true is advertised where it was written.
//   - A default must match the node it stands in. It is filled in for any absent
//     property, a required one too, whose object is present; it is taken as written.
//     Inside a branch of oneOf defaults are advertised and not filled in, since
//     which branch is meant is only known from the whole value.
//   - Numbers in enum, const, default and examples must be lossless.
//
// # Bounds
//
// Nothing recurses: nesting is bounded by lossless.Parse alone. A schema has at most
// [MaxNodes] nodes, one validation takes at most [MaxChecks] checks, echoed values are
// cut at limits.Preview.
//
// Every function is pure and may be called from any goroutine.
package schema
