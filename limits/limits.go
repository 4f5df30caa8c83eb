// Package limits is the one table of the bounds that dsh puts around everything
// that enters it: model-written code, JSON, reports, queues, retries.
//
// Tests, error messages and the reference documentation read these constants;
// no other package repeats a number. A bound that a person may change has its
// default here and its allowed range beside it.
package limits

import "time"

// Times. Every entry into model-written code has two of them.
const (
	// VMTimeout is the default time one entry may spend inside the JavaScript engine.
	VMTimeout = 5 * time.Second
	// VMTimeoutMin and VMTimeoutMax are the range of a configured vmTimeoutMs.
	VMTimeoutMin = 1 * time.Millisecond
	VMTimeoutMax = 60 * time.Second

	// CallTimeout is the default time of a whole entry, waiting included.
	CallTimeout = 30 * time.Second
	// CallTimeoutMin and CallTimeoutMax are the range of a configured callTimeoutMs.
	CallTimeoutMin = 1 * time.Millisecond
	CallTimeoutMax = 600 * time.Second

	// MaxCallTimeout is the default of what a tool's own timeoutMs may raise
	// its call limit to; its range is CallTimeoutMin to MaxCallTimeoutMax.
	MaxCallTimeout    = 600 * time.Second
	MaxCallTimeoutMax = 24 * time.Hour

	// Shutdown is the most a front door takes to stop, whatever hangs.
	Shutdown = 2 * time.Second
)

// Memory, in MiB where the name says so, else bytes.
const (
	// VMMemoryMB bounds one mount's JavaScript heap.
	VMMemoryMB    = 64
	VMMemoryMBMin = 16
	VMMemoryMBMax = 2048

	// WorkerMemoryMB bounds a worker beyond its size at start (RLIMIT_AS, Linux).
	WorkerMemoryMB    = 1024
	WorkerMemoryMBMin = 256
	WorkerMemoryMBMax = 16384
)

// Data.
const (
	// Source is the most bytes of a mount's source.
	Source = 256 << 10
	// SourceNesting is the bracket nesting beyond which source is refused before it is parsed.
	SourceNesting = 1000
	// Depth is the nesting beyond which a JSON value is refused by name; DepthWorks is promised to work.
	Depth      = 10_000
	DepthWorks = 5_000
	// Frame is the most bytes of one frame between the host and a worker.
	Frame = 64 << 20
	// MCPFrame is the most bytes, and MCPDepth the deepest nesting, of one MCP message.
	MCPFrame = 16 << 20
	MCPDepth = 1000
	// Result and Arguments are the most bytes of a tool's canonical value and of its arguments.
	Result    = 16 << 20
	Arguments = 16 << 20
)

// Counts of what a mount or a session may own.
const (
	Mounts         = 1000 // per session
	Timers         = 200  // per mount
	Listeners      = 200  // per mount
	Services       = 200  // per mount
	Tools          = 200  // per mount
	CallsInFlight  = 64   // into one mount
	AbandonedCalls = 8    // per mount, then it is failed and its VM closed
	EventQueue     = 256  // per mount, then events are dropped and counted
	Handles        = 10_000
	RememberedGone = 200 // ids and tools that have gone
	WorkerDeaths   = 3   // a minute, before nothing is mounted again by itself
	SpentVMs       = 3   // a minute, before the mount is failed
	Interrupts     = 3   // in a row, before a VM is spent
)

// Text, in characters unless the name says bytes.
const (
	Name        = 80   // a plugin's name in reports
	ErrorText   = 2000 // an error's text
	SourceLine  = 200  // an echoed source line
	Preview     = 120  // an echoed value
	Violations  = 20   // violations reported in one message
	MountAnswer = 2000 // a mount's answer beside the schemas
	Receipt     = 1000 // an unmount's answer

	ReportAll  = 16_000
	ReportAPI  = 11_000
	ReportName = 6_000

	ConsoleLines     = 200 // kept per mount
	ConsoleLine      = 500 // characters of a kept line
	ConsoleRate      = 100 // lines per second to stderr
	ConsoleBurst     = 200
	ConsoleLineBytes = 8 << 10 // of one line on the wire

	Progress = 2000 // characters of one progress text
)

// ToolName is the rule for a tool's name: every client and provider takes these.
const ToolName = `^[a-zA-Z0-9_-]{1,64}$`

// Services: bash.
const (
	BashTimeout    = 120 * time.Second // of run, unless the request says
	BashTimeoutMax = 600 * time.Second

	BashCommand   = 100_000   // bytes of a command line; the system takes little more
	BashStdin     = 16 << 20  // bytes of a standard input
	BashEnv       = 100_000   // bytes of the environment of a request
	BashOutput    = 64_000    // bytes of each stream that are kept as text
	BashOutputMax = 1_000_000 // of stdout, if the request says
	BashSpill     = 64 << 20  // bytes of each stream that go to a file

	BashSpillFiles = 32 // per plugin, then the oldest goes
	BashRunning    = 16 // commands at a time, per plugin
	BashRunningAll = 128

	BashLinger    = 250 * time.Millisecond // for what outlives its shell to end by itself
	BashKillAfter = 3 * time.Second        // from SIGTERM to SIGKILL
	BashLost      = 500 * time.Millisecond // the same, where nobody waits for the command
	BashGiveUp    = 5 * time.Second        // without a death, from SIGKILL until the rest is left
	BashGiveUpAll = 60 * time.Second       // the same, although they die: they are born as fast
)

// Services: web, kv, log.
const (
	WebBody       = 5 << 20 // bytes of a body, unpacked
	WebContent    = 100_000 // characters of content
	WebConvert    = 2 << 20 // bytes of HTML that becomes Markdown or text
	WebNesting    = 16      // levels of lists, quotes, emphasis and the like that Markdown shows
	WebTableCells = 20_000  // of a table that Markdown shows as one
	WebTime       = 30 * time.Second
	WebRedirects  = 5
	WebURL        = 8000      // bytes of a URL
	WebHeaders    = 50        // of a request
	WebHeaderAll  = 16 << 10  // bytes of them
	WebAnswerAll  = 256 << 10 // bytes of the headers of a response
	WebProviders  = 50        // of each kind
	WebQuery      = 2000      // characters of a search's query
	WebSources    = 50        // of a search
	WebSourcesIf  = 10        // unless the request says
	WebTitle      = 500       // characters of a source's title
	WebSnippet    = 2000      // characters of a source's snippet

	KVKeys  = 10_000  // per plugin
	KVKey   = 512     // bytes of a key
	KVValue = 1 << 20 // bytes of a value
	KVTotal = 4 << 20 // bytes of keys and values, per plugin

	LogText   = 2000 // characters of a message
	LogFields = 20   // shown behind a message
	LogField  = 500  // characters of a field's value
	LogRate   = 50   // lines per second, per plugin
	LogBurst  = 100
)

// Services: fs.
const (
	FSPath      = 4096     // bytes of a path
	FSText      = 16 << 20 // bytes of a file read at once or written
	FSBytes     = 4 << 20  // bytes of a file read at once as bytes: a plugin's memory has to hold them several times
	FSPiece     = 64 << 10 // bytes of a piece of a stream
	FSEcho      = 64 << 10 // bytes of a text before and after a change, in its result
	FSEdit      = 1 << 20  // bytes of the old and of the new text of an edit
	FSEntries   = 10_000   // entries of a listing, paths of a search
	FSVisited   = 100_000  // entries looked at by one listing, search or watch
	FSPattern   = 1000     // bytes of a pattern
	FSPatterns  = 50       // patterns that a search leaves out
	FSDepth     = 200      // folders below a target that are searched, watched or removed
	FSLinks     = 40       // symbolic links on the way to a target
	FSSteps     = 10_000   // names looked at on the way to a target, links and retries included
	FSWatches   = 50       // watches per plugin
	FSWatchDirs = 2000     // folders of one watch
	FSWatched   = 500_000  // names that the watches of all plugins know
	FSChanges   = 1000     // changes in one call of a watch's callback
	FSPending   = 10_000   // changes that wait for it; beyond, they are lost and it is told
)

// FSSettle is how long a watch collects changes before it calls back.
const FSSettle = 50 * time.Millisecond

// FSRacy is the age from which a file's times tell a change from the one before;
// a younger file's version waits for it.
const FSRacy = 20 * time.Millisecond

// Services: between a plugin and the host.
const (
	Iterations = 200 // of a plugin under way
	Members    = 100 // of a provided value that reports show
)

// Models.
const (
	LLMAnswer      = 64 << 20 // bytes of one answer on the wire
	LLMEvent       = 16 << 20 // bytes of one event of a stream
	LLMError       = 256 << 10
	LLMMessage     = 16 << 20 // bytes of text and arguments in one assembled message
	LLMBlocks      = 4096     // blocks of one assembled message
	LLMReplay      = 4 << 20  // bytes of what a provider wants back and nobody else reads
	LLMProviders   = 100      // registered at a time
	LLMRetries     = 2        // of a request, unless configured
	LLMScript      = 4 << 20  // bytes of a script of a conversation
	LLMScriptSteps = 10_000   // steps of it
	LLMSessions    = 1000     // sessions whose place in a script is remembered
	LLMCredentials = 64 << 10 // bytes of the file of credentials
	LLMTyped       = 1 << 20  // bytes of one line that a person types as the model
)

// Times of a model's answer.
const (
	LLMIdle      = 300 * time.Second      // without a byte, until the answer counts as stalled
	LLMRetryBase = 500 * time.Millisecond // before the first retry; doubled for each further one
	LLMRetryMax  = 10 * time.Second       // the longest wait, also the longest that a provider may ask for
)

// Sessions.
const (
	SessionEvent = 64 << 20 // bytes of one event's line
	SessionBytes = 1 << 30  // bytes of a session's log; beyond, a new session is needed
	SessionBatch = 100_000  // events of one append
	SessionTitle = 200      // characters of a title

	SessionWindow = 200 * time.Millisecond // until what was appended is written by itself
	SessionFree   = 2 * time.Second        // until the lock of a killed process counts as held by another

	SessionAttachment     = 20 << 20 // bytes of an attachment
	SessionAttachments    = 1000     // of a session
	SessionAttachmentsAll = 1 << 30  // bytes of them

	SessionObservers = 100 // of one session
)

// The prompt.
const (
	PromptOwned = 100       // sections, contexts and variables per plugin
	PromptText  = 64 << 10  // bytes of one section or context, and of a variable's value
	PromptAll   = 512 << 10 // bytes of a system prompt, and of a runtime context

	PromptPart  = 3 * time.Second // of one function of a temporary plugin
	PromptParts = 6 * time.Second // of all such functions in one text

	// ListenerAnswer is the time of a temporary plugin's listener that is passed over
	// if it gives no answer, without what comes next.
	ListenerAnswer = 3 * time.Second
)

// Background tasks.
const (
	TasksRunning = 10      // at a time, per scope
	TasksAll     = 500     // at a time, of all scopes
	TasksKept    = 32      // that have ended and are remembered, per scope; then the oldest goes
	TaskLabel    = 200     // characters
	TaskDetail   = 200     // characters
	TaskOutput   = 128_000 // bytes of unread output; beyond, the oldest go
	TaskRead     = 32_000  // bytes of output in one answer
	TaskReaders  = 64      // whose place in the output is remembered, per task

	TaskEnd = 90 * time.Second // for a task to end when it is told to; then it is left
)

// Tools that models call: shell, web, todo, questions.
const (
	ShellLive      = 200 * time.Millisecond // between two pieces of live output; for what comes with a task's first
	ShellWaitMax   = 600 * time.Second      // for output of a task or its end, in task_output
	ShellKillWait  = 5 * time.Second        // for the end of what task_kill stops
	WebWindow      = 20_000                 // characters of a page in one answer, unless the call says
	WebWindowMin   = 500
	TodoItems      = 200
	TodoContent    = 1000 // characters of one
	AskQuestions   = 10   // in one call
	AskOptions     = 20   // of one question
	AskText        = 2000 // characters of a question
	AskLabel       = 200  // characters of a header or an option's label
	AskDescription = 1000 // characters of an option's description
	AskAnswer      = 20_000
)

// Searches of whole trees, and the tools on files.
const (
	ScanVisited = 500_000   // files and folders that one search looks at
	ScanWorkers = 8         // folders and files that one search looks at together, at most
	IgnoreFile  = 256 << 10 // bytes of a .gitignore file that are read
	IgnoreRules = 2000      // patterns of one

	FileLines      = 2000      // lines that read gives, unless told
	FileLinesMax   = 10_000    // lines that read gives if told
	FileLine       = 2000      // characters of a line that read shows
	FileShown      = 50 << 10  // bytes of text that read and grep show
	FileCounted    = 256 << 20 // bytes that read looks at beyond what it shows, to count the lines
	FileImage      = 3_750_000 // bytes of an image: as base64 it is what providers take
	FileRemembered = 10_000    // files per scope whose version is remembered for read-before-edit
	FileScopes     = 256       // scopes that are remembered
	FileNear       = 1 << 20   // bytes of a file in which lines like those of an edit are looked for

	GlobPaths = 100 // paths that glob shows

	GrepMatches = 250              // lines that grep shows
	GrepLine    = 500              // characters of a line that it shows
	GrepContext = 10               // lines that it shows around each, at most
	GrepPattern = 1000             // bytes of a pattern
	GrepProgram = 1000             // instructions of a compiled pattern
	GrepRecord  = 1 << 20          // bytes of a line; files with longer ones are left out
	GrepBytes   = 2 << 30          // bytes that one search reads
	GrepTime    = 30 * time.Second // that it takes; what was found by then is shown
)

// Agents.
const (
	AgentParallel   = 10        // tool calls of one answer at a time
	AgentInbox      = 1000      // messages in each list
	AgentMessage    = 4 << 20   // bytes of text of one message
	AgentResult     = 256 << 10 // bytes of text of a tool's result that the model sees
	AgentImages     = 20        // of a result
	AgentRecoveries = 10        // retries of a step that listeners ask for

	AgentAfterwards = 5 * time.Second // for a log to take what a cancelled turn leaves
)

// Compaction of conversations; tokens are estimates.
const (
	CompactResult = 8192 // characters of a tool's result that stay whatever happens
	CompactHead   = 4096 // characters at the beginning of a longer one that stay
	CompactTail   = 1024 // the same, at its end
	CompactPruned = 1000 // results that are pruned at once
	CompactKeep   = 20_000

	CompactSummary     = 16_384  // tokens of a summary, unless the window is small
	CompactSummaryText = 100_000 // characters of it
	CompactTranscript  = 500_000 // tokens that are given to the model to summarise
	CompactPiece       = 16_000  // characters of one text in them
	CompactPieceMin    = 500     // the same, when they are too many
	CompactQuote       = 4000    // characters of the person's last message that are quoted
	CompactTries       = 3       // requests for one summary, each with half of the text
)

// What plugins may ask of an agent, its session and its model.
const (
	AgentAsks    = 20     // messages of one plugin in one turn, and between two turns
	AgentAsksAll = 100    // messages of all plugins of an agent since the person last spoke
	AgentAskText = 32_000 // characters of one message

	SessionPage      = 1000      // events or messages of one answer
	SessionPageIf    = 100       // unless the plugin says
	SessionPageBytes = 1 << 20   // of one answer
	SessionPageEvent = 256 << 10 // bytes of one event's data, beyond which it is left out
	SessionPageText  = 20_000    // characters of one message's text

	ModelAsks     = 4         // requests of one plugin at a time
	ModelAskRate  = 30        // a minute, of one plugin
	ModelAskText  = 256 << 10 // bytes of everything in one request
	ModelAskTurns = 100       // messages of one request
	ModelAskIf    = 4096      // tokens of an answer, unless the plugin says
	ModelAskMax   = 32_768    // tokens of an answer
)

// The terminal.
const (
	TerminalTyped = 10_000  // lines that were typed and nobody has read yet; beyond, they are dropped
	TaskText      = 1 << 20 // bytes of a task

	TaskWait = 3 * time.Second // for the first byte of a pipe beside a task that is an argument

	RunTimeoutMin = time.Millisecond
	RunTimeoutMax = 7 * 24 * time.Hour
)

// The workspace.
const (
	WorkspaceFile    = 32 << 10 // bytes that are shown of an AGENTS.md file
	WorkspaceAll     = 56 << 10 // bytes that are shown of all of them: they are one context
	WorkspaceFolders = 50       // folders from the working folder up that are looked at
)

// Permission.
const (
	ShellLine     = 32 << 10 // bytes of a command line that is looked at; beyond, it is unknown
	ShellCommands = 1000     // commands of it

	PermissionRules      = 500       // of a configuration, and remembered of a session, each
	PermissionRule       = 4000      // bytes of a rule
	PermissionDetail     = 300 << 10 // bytes of a question's detail: the code of a mount is in it whole
	PermissionWaiting    = 64        // questions of a session that wait
	PermissionDenials    = 1000      // denials of mounts without a question that a session logs
	PermissionLogged     = 4000      // characters of a question's detail in the log
	PermissionReasonText = 1000      // characters of an answer's reason
)

// Trust in the files of projects.
const (
	TrustFile  = 1 << 20   // bytes of a file
	TrustFiles = 1000      // files of a project
	TrustBytes = 16 << 20  // bytes of all of them
	TrustNames = 10_000    // names in its .dsh folder that are looked at
	TrustDiff  = 512 << 10 // characters of a diff that is shown

	TrustProjects     = 1000     // of which something is trusted; the oldest goes
	TrustRecord       = 1 << 20  // bytes of what is kept of one
	TrustContents     = 2000     // contents that are kept for diffs; the oldest go
	TrustContentBytes = 64 << 20 // bytes of all of them

	TrustLock = 5 * time.Second // for another process that writes
)

// Plugin files, and what outlives temporary plugins.
const (
	PluginFiles      = 500 // of one host, mounted or about to be
	PluginFileParts  = 200 // files of one plugin
	PluginFileDepth  = 8   // folders below a plugin's own
	PluginFileName   = 512 // bytes of a part's path
	FileDeaths       = 3   // of a file's machine or worker by its fault, then the file is skipped until it changes
	RememberedScopes = 1000
)

// Compositions: documents, layers and what is watched.
const (
	DocumentBytes    = 1 << 20  // of a document
	DocumentDepth    = 64       // nesting of its values
	DocumentValues   = 200_000  // of a document
	DocumentRows     = 10_000   // of a document, and of a composition
	DocumentFaults   = 100      // that are told at once
	DocumentExcerpt  = 160      // characters of a line that are shown with a fault
	DocumentID       = 64       // characters of a row's id
	DocumentName     = 1000     // bytes of a row's name
	DocumentNames    = 200      // services or tools that one row names in a field
	DocumentSet      = 64 << 10 // bytes of an argument of --set
	DocumentPath     = 64       // members on the way to a value of --set
	DocumentIncludes = 100      // files that a composition includes
	DocumentNested   = 8        // of them in each other

	RowsStart = 10 * time.Second // that the plugins of one transaction have to start

	WatchFolders = 10_000 // that are watched at a time
	WatchPaths   = 1000   // told by name in one call; beyond, everything may have changed

	WatchSettle    = 100 * time.Millisecond // without a change, until it is told
	WatchSettleMax = time.Second            // that changes without a pause are waited for
)

// Composition of documents.
const (
	CompositionProjects = 200 // mounted in a process; further ones are left out

	WroteReload = 20 * time.Second // what an agent wrote and a person allowed is taken over within it, or by the next reload
)

// Settings of Go plugins in documents.
const (
	SettingsText  = 4096 // characters of a text that says no bound of its own
	SettingsItems = 1000 // of a list that says no bound of its own

	FSRoots     = 100 // folders of each kind
	BashPassEnv = 200 // variables that commands get beside those that they get anyway

	AgentParallelMax = 100 // what AgentParallel may be raised to
	AgentRetriesMax  = 20  // what LLMRetries may be raised to

	AgentStepsMax  = 1_000_000         // a limit of steps that can be set
	AgentTokensMax = 1_000_000_000_000 // a limit of tokens that can be set
)
