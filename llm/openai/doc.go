// Package openai speaks the chat completions API: to DeepSeek, to OpenAI, and to
// every server that imitates it (Ollama, vLLM, llama.cpp, LM Studio, OpenRouter,
// Groq, Mistral…).
//
// The imitations differ. What this package takes: reasoning under three names or
// as parts of the content, tool deltas without an index, with the same index, or
// with ids and names that repeat or are null, arguments as a string or an object,
// finish reasons that are missing or come twice, streams without [DONE], errors
// inside a stream, usage anywhere, and an answer that is no stream. What it does
// not take for an answer: a stream that ends before it said why, which is
// STREAM_CLOSED, and one that ends with nothing in it, which is EMPTY_RESPONSE.
//
// # What is sent back
//
// Text blocks of a message are joined; the content of an assistant message is
// always a string. Arguments of tool calls go back byte for byte, "" as {}.
// Reasoning goes back on messages with tool calls, to the provider it came from,
// under the name it came under. DeepSeek wants reasoning_content on every such
// message, "" when there is none. Results of tools come directly behind the
// message with their calls; images in them follow in a user message.
package openai
