// Package shell is the tools bash, task_output, task_list and task_kill, over the
// services bash and tasks.
//
// A command in the foreground is run by service/bash and belongs to the call: its
// end ends it. While it runs, what it writes is shown as progress, at most every
// limits.ShellLive. How it ended is the result, whatever its exit code.
//
// A command in the background is a task of the scope that the plugin is mounted in,
// and ends with the plugin; so mount the plugin on the context of each agent. When
// a task ends, the agent whose call started it is told by a message in its log
// (agent.Agent.Inject), which it reads with its next step; it is not woken. It is
// not told what it learns by the answer of task_output or task_kill anyway.
//
// The three tools of tasks show tasks of every kind, not of commands alone.
//
// Everything is safe for concurrent use. A command in the foreground has a timer
// for its progress, which ends with the call; tasks have their goroutines in
// service/tasks.
package shell
