// Package killtest kills the real program with SIGKILL while an agent works, at
// every boundary and at random times, and resumes its session. The model is a server
// on loopback that streams slowly, asks for tools, and refuses a history that a
// provider would refuse.
//
// What is held: the next resume starts and the work comes to its end; every call
// has exactly one result; every event that was printed is in the log, byte for byte;
// and no process of the killed program's is left. It has tests only.
package killtest
