// Package compact keeps a conversation within the context window of its model: big
// results of tools are pruned first, then older messages are summarised by the
// model. [Plugin] is mounted on the agent's own context; [Now] does it when it is
// asked for.
//
// # When
//
// Before a step (agent/pre-step), if the next request takes more than the window
// leaves: a tenth of it is kept for the answer, or as much as the answer may have,
// up to a half. What a request takes is what the provider counted for the last one
// and its answer, with an estimate of what came after; an estimate alone where the
// provider does not count. And after a request that was refused as too large
// (CONTEXT_WINDOW_EXCEEDED, agent/request-error), which then is made again in its
// step. Where the window is not known that is the only occasion.
//
// # How
//
// Results of more than limits.CompactResult characters lose all but their first
// limits.CompactHead and last limits.CompactTail, the oldest first, never those of
// the latest step; a mark says what is missing and how to get it. If that does not
// bring the request to three quarters of what fits, everything but the end of the
// conversation (limits.CompactKeep tokens or a quarter of what fits, whichever is
// less; the latest step whole, unless it takes half of what fits) is given to the
// model, as a text in a one-shot request, and its summary stands in its place. The
// last message of the person in that part is quoted word for word.
//
// Calls and their results stay together. What was replaced stays in the log, where
// people see it; requests are made of the surface. A summary is replaced by the
// next one, which carries it over.
//
// # When it fails
//
// A summary that is empty, or hardly shorter than what it is of, is not used. The
// log says so (compact/end). Before a step the turn then goes on, and compaction is
// not tried again before a twentieth of the window more is used. A request that was
// refused as too large is made again at most three times in its step: with results
// pruned, with a summary of older messages, with a summary of all messages before
// the step. After that the turn ends with an error that says what to do.
//
// # Concurrency
//
// A plugin works on the goroutine of its agent. Nothing here starts a goroutine or
// holds a lock.
package compact
