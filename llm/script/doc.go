// Package script plays a scripted conversation from a YAML file as if it were a
// model, and checks what it is sent. It needs no key and no network.
//
//	steps:
//	  - expect:                     # what the request must be; all of it optional
//	      lastUser: "list the files"    # is part of the last user message's text
//	      system: "You are"             # is part of the system text
//	      tools: [bash, cordis_mount]   # are offered
//	      noTools: [greet]              # are not
//	      toolResults:                  # those since the last answer, in order
//	        - contains: "dyn-1"
//	          isError: false
//	      messages: 1                   # in the request
//	    reasoning: "I should look."
//	    text: "Let me look."
//	    calls:
//	      - name: bash
//	        arguments: {command: ls}    # or a string, which is sent as it stands
//	        id: call_1                  # made up when left out
//	    usage: {input: 10, output: 5, cacheRead: 0, cacheWrite: 0, reasoning: 0}
//	    finish: stop                # or max-tokens; tool-calls follows from calls
//	    chunk: 8                    # characters of one delta; 0 is everything at once
//	    delayMs: 0                  # before each chunk
//	    failures:                   # attempts that fail before the step is played
//	      - {code: RATE_LIMIT, message: "slow down", retryAfterMs: 5, status: 429}
//	purposes:                       # answers to requests other than steps, by purpose
//	  compact:
//	    - text: "Summary."
//
// # Which step
//
// Each session has its place in the script. At its first request the place is
// the number of messages of a model in the request, so that a session that is
// resumed goes on where it was; afterwards every answer moves it on by one. A
// failure does not: the retry gets the next failure, or the step.
//
// A request that is not what a step expects is answered with the failure SCRIPT,
// which says what was expected and what came; a script that is over too.
package script
