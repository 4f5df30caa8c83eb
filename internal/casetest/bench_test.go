package casetest

import "testing"

// BenchmarkStart is a whole life of dsh mcp as its client sees it: start,
// handshake, first list of tools, end.
func BenchmarkStart(b *testing.B) {
	program := Program(b)
	ready := 0.0
	for b.Loop() {
		client, err := Start(b.Context(), program, "mcp")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := client.Tools(b.Context()); err != nil {
			b.Fatal(err)
		}
		ready += float64(client.Age().Microseconds()) / 1000
		if err := client.Close(closeWithin); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(ready/float64(b.N), "ms-to-list")
}

// BenchmarkCall is one call of a tool over the wire, there and back.
func BenchmarkCall(b *testing.B) {
	client, err := Start(b.Context(), Program(b), "mcp")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		wait, err := client.Call("no_such_tool", []byte(`{}`))
		if err != nil {
			b.Fatal(err)
		}
		if answer, err := wait(b.Context()); err != nil || !answer.IsError {
			b.Fatal(answer, err)
		}
	}
	if err := client.Close(closeWithin); err != nil {
		b.Fatal(err)
	}
}
