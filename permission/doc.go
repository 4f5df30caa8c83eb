// Package permission is the policy of a program: which acts may happen, which a
// person is asked about, and which are refused. It decides where things happen,
// at the intents of the services fs, bash and web, so what a temporary plugin
// does obeys the same mode as what the model calls.
//
// # Modes
//
//	act                                       ask     auto-edit   full    read-only
//	read: look at files and folders           allow   allow       allow   allow
//	edit: write, edit, remove, make a folder  ask     allow ¹     allow   deny
//	bash, if the line only reads ²            allow   allow       allow   allow
//	bash, any other line                      ask     ask         allow   deny
//	fetch a page, search the web              ask     ask         allow   ask
//	mount: cordis_mount, what is loaded ³     ask     ask         allow   deny
//	tool: a call of a mounted tool            ask     ask         allow   deny
//	cordis_inspect, cordis_unmount            allow   allow       allow   allow
//
//	¹ within the roots and outside of .git, whose hooks and settings are run; else ask
//	² every command of it is on the list of package shell, and nothing is redirected
//	  to a file
//	³ an edit of a .dsh folder or anything in it, at any depth and through links, or of
//	  a file agent.cordis.yml, in upper or lower case; see below
//
// # Rules
//
// A [Rule] names acts; see [ParseRule] for its forms. One of Deny refuses in every
// mode, one of Allow spares the question, but for what read-only refuses. Deny
// beats allow. Of a command line an allowing rule has to match every command, and
// every file that it writes by redirection has to be allowed by an edit rule; it
// takes one denied command, or file, to deny the line. A line that cannot be read
// in full is never allowed by rules, but for the rule "bash" alone, and is asked
// about where rules deny commands. The same holds for a line that redirects from
// what is not known, or connects by a redirection; a rule that is this very line
// allows them. A line with an input is allowed by no rule that is this very line.
//
// What a person allowed for the session with a * holds only for ordinary flags of
// go and cargo, not for those by which they run other programs. git does not only
// read where it would take a bare repository's settings, which a project may hold
// as ordinary files. Rules about URLs see a path also as a server may, that goes up
// at its ..: an allowing rule has to match both, a denying one either.
//
// The rules see what a line says, not what the programs in it do: they stop
// accidents, they do not confine.
//
// # What plugins are loaded from
//
// A change of a project's .dsh folder or agent.cordis.yml ([trust.Protected]) is as
// good as a mount: the rule mount allows it, one such as edit(.dsh/**) does not, but
// may deny it. So is one of a file that [Config.Loads] names, such as one of --config.
// What a person allowed, at the question or by the rule mount, is handed
// to [Config.Trusted] with the very bytes that were written, once they are. To mode full
// nothing is handed, nor what was too long to be shown whole. For the session only the
// writing of the same bytes is remembered.
//
// A command line that writes there is a command line as any: what it wrote is known to
// nobody, so it is not trusted and not loaded. Not looked for is a .dsh folder deeper
// in a folder that is removed with everything in it.
//
// # Who acts
//
// The actor is what the host says ([tool.ActorOf]), nothing else is believed. The
// nearest binding on the chain of its scope decides ([Policy.Bind]); where there is
// none, [Config] does, as for dsh mcp.
//
// A temporary plugin cannot widen anything: its own listeners may only tighten what
// is decided here, and what a person remembers for the session about a mounted
// tool, or an act of a mount, holds for the same source only, by its hash. What was
// remembered for the model holds for no mount.
//
// # Questions
//
// Where the table says ask, the binding's Ask is called, one question at a time,
// once all other listeners have agreed. It ends with the act that it is about: a
// cancelled turn cancels its question. Without Ask (headless) the act is denied, and
// the denial says how to allow it. More than limits.PermissionWaiting questions that
// wait deny.
//
// Every question and every denial is in the session's log, as approval/asked and
// approval/decided. Their Source says who decided: user, policy (mode and rules) or
// headless. An answer with Stop has Scope "stop": the loop ends the turn at it. Of
// mounts at most limits.PermissionDenials denials without a question are logged.
//
// # Order
//
// Mount the plugin on the root context, before the services whose acts it decides,
// so that it outlives them: while it is not there, nothing is denied.
//
// # Concurrency and ownership
//
// Everything may be called from everywhere. The package starts no goroutine; no
// lock is held while Ask, a listener or the log runs. Locks: Policy.mu and
// binding.mu are leaves.
package permission
