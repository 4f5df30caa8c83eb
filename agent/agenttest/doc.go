// Package agenttest is a kit for tests of what runs in or beside an agent: a real
// runtime with the services that the loop needs, sessions in memory, and models
// that play scripts.
//
//	k := agenttest.New(t)
//	k.Script("steps:\n- calls: [{name: greet}]\n- text: done\n")
//	a := k.Start(agent.Options{Plugins: …})
//	k.Run(a, "go")          // a prompt, until the agent is idle
//	k.End(a).Kind           // session.EndCompleted
//
// Everything that models are sent is recorded, and when the test ends each body is
// held against the one that the log alone gives ([Rebuild]).
package agenttest
