//go:build race

package worker

// The engine is about 40 times slower under the race detector.
const raceEnabled = true
