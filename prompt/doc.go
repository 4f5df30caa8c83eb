// Package prompt makes the system prompt and the runtime context of a request out
// of what plugins contribute: sections, contexts and variables.
//
// # Parts
//
// A section is a part of the system prompt. A context is a part of the runtime
// context, which changes during a session and so is a message of its own
// ([Snapshot]), never in the system prompt: a provider's cache of the prefix stays
// good. A part is a Text, in which {{variable}} is replaced, or a Func, whose
// result is taken as it is. A part that is empty is dropped; the rest is sorted by
// order, the composition before temporary plugins, these by the number of their
// mount, at last by name; and joined by a blank line. The same parts and values
// give the same bytes.
//
// Two sections are built in: harness:identity at -100, and deployment:persona at
// 0, if [Config.Persona] is given. Guidance of tools stands at 100 to 199.
//
// # Variables
//
// A reference is {{name}} with a name of the form [a-z][a-z0-9_]*. One that is
// written otherwise, that nobody knows or whose value is empty is an error of the
// part; braces that nothing closes are text. Values are not read again. The values
// of the [View] (provider, model, cwd) come before variables that are registered,
// and each of these is asked at most once for one text.
//
// # Layers
//
// A part belongs to the scope of the context that it was registered on
// ([tool.ScopeOf]) and is seen by that scope and all below; the nearest of a name
// shadows the others. A name that is taken in the same scope is [ErrDuplicate];
// for a temporary plugin one that is taken anywhere on its chain is, so that it
// never shadows a part of the composition. What a fiber of a [cordis.Stage] adds is
// seen when that is committed, in the place of what the stage takes.
//
// # Failures
//
// A part of the composition that fails is an error, which names the part and its
// owner. One of a temporary plugin never is: it is left out, and a warning on its
// plugin's logger says so once, until it has worked again. Functions of temporary
// plugins have limits.PromptPart each and limits.PromptParts together in one text;
// one that ran out of its time is not asked again. Where the text is full
// (limits.PromptAll), those of temporary plugins are left out.
//
// # Concurrency and ownership
//
// Everything may be called from everywhere, functions of parts included. Nothing
// starts a goroutine and no lock is held while a function or a listener runs: it
// runs on the goroutine of the caller, as a tracked call of its owner. What is
// registered is an effect of the context's fiber.
package prompt
