// Package lossless reads, holds and writes JSON without losing anything that
// its text says: the order of members, the digits of numbers, keys such as
// "__proto__", and lone surrogates written as escapes.
//
// # What is promised
//
//   - [Parse] is strict: one document, valid UTF-8, no trailing data, no key
//     twice in an object. Its errors say where: the byte and the path.
//   - Nothing recurses. Nesting up to [limits.Depth] works everywhere (parsing,
//     encoding, comparing, checking); deeper text is refused by name, at the byte
//     where it passes the limit, so hostile nesting costs no more than reading it.
//   - The number of bytes is the caller's to bound, before Parse.
//   - A [Value] is immutable and may be used from any goroutine. It keeps the
//     parsed text alive, since its strings are cut from it.
//   - [Value.Encode] writes compact JSON: members in their order, numbers as they
//     came, no HTML escaping, a lone surrogate as the escape it came as.
//     Parse(Encode(v)) is Equal to v, and encoding it again gives the same bytes.
//
// A string with a lone surrogate (the escape \ud800 without its partner) is legal
// JSON. [Value.Str] returns it with the surrogate in its three-byte form, which is
// not valid UTF-8; encode such a value with this package, not with encoding/json.
//
// # Numbers
//
// A number is its literal. JavaScript and most readers make a float64 of it;
// [CheckNumbers] names the numbers that would not survive that.
package lossless
