// Package llmtest tests adapters of models: the grammar of their streams, the
// conformance that the agent loop relies on, and the reading of recorded traffic.
//
// Recorded returns answers that real servers gave, with what a client should
// read in them; a bounded selection is in testdata, all of them are beside a
// checkout that has them. Serve plays such an answer from a real HTTP server on
// loopback. Run is the conformance suite.
package llmtest
