// Package agent is the loop: it takes what waits in a session's inbox, asks the
// model, runs the tools that it calls, and logs all of it.
//
// [Plugin] provides the service [Service], which starts agents. An [Agent] drives
// one session: it is a fiber below that plugin, whose context carries a
// [tool.Scope] of its own. What is mounted on [Agent.Context] belongs to the
// session: its tools, listeners and parts of the prompt are seen by it alone, and
// end with it.
//
//	a, err := agents.Start(ctx, agent.Options{Session: s, Model: llm.Config{Provider: "deepseek"}})
//	err = a.Followup("fix the failing test")
//	err = a.WhenIdle(ctx)
//	err = a.Close(ctx)
//
// Whoever shows what happens follows the log ([session.Log.Follow]), and
// [tool.Progressed] for live output.
//
// # Inbox
//
// Two lists wait, and the log holds both: prompts for the next turn, one of which
// is taken for each turn, and steering for the next step, all of which is taken at
// the next boundary. A message that wakes begins a turn if none runs.
//
// # A turn
//
//  1. turn/start.
//  2. The boundary of a step: the limits are checked, the inbox is claimed, the
//     runtime context is rendered and told if it is not what the model was told
//     last, agent/pre-step decides. A rejection ends the turn (blocked); so does a
//     first step to which nobody says anything (completed).
//  3. The step: step/start, the messages, the request, the answer, its tool calls,
//     step/end.
//  4. Where the answer called no tool, or a tool concluded the turn, and nothing
//     waits for the next step, agent/turn-stopping is asked: a listener objects by
//     steering. Then the turn ends, else it goes on with 2.
//  5. turn/end, and a checkpoint. If prompts wait, the next turn begins.
//
// A denial by which the person stops (approval/decided with the scope stop) ends the
// turn after its step, of which no further call is started.
//
// A turn ends completed; or denied, when it would have completed but an approval
// was denied since the start of its last step with tool calls; max-tokens, when an
// answer was cut; limit; blocked; aborted; error. After the last four what waits
// is parked until somebody wakes the agent; so it is after a turn that said nothing.
//
// # A request
//
// Every request is [RequestOf] of what the log holds ([session.Log.Request]) and of
// nothing else: its header (config, system prompt, tools) is logged before it when
// it changed, and its messages are on the surface. All of it is made anew for each
// attempt: a tool that was mounted in one step can be called in the next. The bytes
// of what came before stay, so that a provider's cache of the prefix is good.
//
// A checkpoint is made before each request, before each body of a tool that the
// model called, and at the end of a turn. Where the log cannot be made durable the
// request is not sent, the body does not run, and the turn ends in error.
//
// A failed request is made again in the same step as agent/request-error decides;
// innermost is the policy of [Config].Retry. Each retry is logged before its wait
// and after it, and how many there were is read from the log.
//
// # Tool calls
//
// Calls that may overlap share a pool of [Config].MaxParallel; a call that may not
// runs alone, and none starts before it has ended. Only bodies overlap: tool/call,
// tools/pre-execute, tools/post-execute and tool/result come in the order of the
// answer. The arguments go to the tool as the model wrote them. Every call gets
// one result: one that is cancelled before it began says so. Calls of an answer
// that was cut (max-tokens) are dropped. What a result shows the model is bounded
// by limits.AgentResult and limits.AgentImages.
//
// # Failures
//
// A failure or a panic of anything that the loop calls ends the turn in error, with
// the log whole: every call has its result, the step and the turn are closed. It is
// told by agent/error, also when not even that could be logged.
//
// # Concurrency and ownership
//
// All methods may be called from any goroutine. No lock is held while listeners,
// tools, adapters and functions that were handed in run. An agent has one goroutine
// while a turn runs, and for each tool call one until that has ended; they are a
// tracked call of the agent's fiber: when that unloads, the turn is cancelled at
// once and waited for. [Agent.Maintain] and [Agent.Ask] run on their caller's.
//
// Waiting, from within a turn, for its end is refused with [ErrBusy].
//
// Locks: Agents.mu and Agent.mu are leaves but for the log's and the runtime's.
package agent
