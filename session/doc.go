// Package session is the log of a conversation: an append-only list of events of
// which everything else is a function, and the contract of the stores that keep it.
//
// What the model sees is logged, and nothing else is: a request is [Log.Request],
// which depends on the events alone. Whoever has the log can make every request
// of its past again ([Log.RequestAt]).
//
//	store, err := jsonl.New(dir)
//	s, err := store.Create(ctx, session.Meta{ID: "fix-tests", Cwd: cwd})
//	_, err = s.Append(session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1}, session.UserMessage{Message: m})
//	err = s.Checkpoint(ctx) // durable: now the model may be asked
//	request, err := s.Request()
//	...
//	err = s.Close(ctx)
//
// # Who appends what, and when
//
// A turn, in the order in which the loop appends:
//
//	turn/start {1}
//	agent/inbox/spliced          the prompt leaves the queue
//	step/start {1,1}
//	user/message …               what the step adds: prompt, steering, contexts
//	request/header, …/context    if they changed
//	    checkpoint, then the request
//	assistant/chunk …            as they come
//	llm/retry, llm/retry-started if the request failed and is made again
//	assistant/message            the answer; at most one for each step
//	tool/call                    in the order of the answer
//	    checkpoint, then the body
//	tool/result                  in the order of the answer
//	step/end {1,1}
//	step/start {1,2} …
//	turn/end {1, reason}
//	    checkpoint
//
// Titles, presets, modes, approvals, todos, one-shot requests and the inbox may
// be appended anywhere. Compaction replaces nodes of the surface between steps, and
// within a step that has no answer yet: when its request was too large.
//
// # Rules
//
// [Log.Append] checks before it admits, all of a batch or nothing of it:
//
//   - Seqs are contiguous from 0, turns from 1, steps from 1 in each turn; one of
//     each is open at most; what names a turn and a step is of the open ones.
//   - An answer's call ids are unique in it. A tool/call repeats its block
//     exactly. Every call gets one result before the step ends, in the order of
//     the calls, which may overlap: several tool/calls may wait at a time.
//     A result without tool/call says TOOL_NOT_STARTED.
//   - Between an answer and its results nothing comes onto the surface.
//   - A replace names each node that it shadows in its sources, and takes an
//     answer with calls only with all their results. A tool/result replaces one
//     tool/result, of which only the content changes. A user/message with empty
//     content removes what it replaces.
//   - Header deltas of early writers are refused. Types that are not known are
//     carried as they came ([Raw]); so are members that are not known.
//
// What is refused is [ErrInvariant] with the rule, and changes nothing.
//
// # Exactness
//
// Events are lines of JSON, kept as they were written ([Event.Line]). Texts of
// messages and the raw arguments of calls come back byte for byte, valid UTF-8 or
// not ([message.Text]). Numbers and the order of members are those of the text.
//
// # Durability
//
// [Session.Append] is memory only; a batch is written when [Session.Checkpoint]
// asks for it, or by itself after limits.SessionWindow. A batch is one write and
// one sync; concurrent checkpoints share one. A batch is not atomic: after a
// crash a beginning of it may be there. When a session is opened again, an open
// turn is repaired ([Log.Repair]): each call that has no result gets one, and a
// prompt that was taken from the queue and said nowhere waits again.
//
// # Concurrency and ownership
//
// All methods may be called from any goroutine. An Event is immutable; messages
// and headers that are returned are the caller's copies. [Log.Follow] and
// [Log.Observe] read behind the log at their own pace, on goroutines that are not
// the appender's, in the order of the log, each event once; nothing that an
// observer does reaches an append.
//
// Goroutines: an observer's ends with it or with the log; a timer's writes one
// batch by itself. Locks: Log.mu, Session.mu and Observer.mu are leaves. A store's
// write runs under none of them, but under the token of Session.flushing.
package session
