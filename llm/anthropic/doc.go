// Package anthropic speaks the Messages API.
//
// # What is sent back
//
// Thinking goes back with its signature, byte for byte and only to the provider
// it came from; thinking that was cut before its signature does not. Results of
// tools that follow each other become one user message, results before anything
// else in it. Arguments that are not a JSON object, which the API does not take,
// go back as {"invalid_json": "…"}.
//
// # Caching
//
// Four marks: behind the tools, behind the system text, and behind the last two
// user messages. A request therefore reads what the request before it wrote,
// also when a step added more blocks than the API looks back over. The marks on
// messages move as the conversation grows; everything else of the prefix keeps
// its bytes.
//
// # What is read
//
// Streams of the API and of gateways in front of it: usage in either place,
// padding, a message that starts twice (what came before the second start is
// taken back), [DONE] behind the end, an end without its blank line. Blocks of
// the server's own tools are left out.
package anthropic
