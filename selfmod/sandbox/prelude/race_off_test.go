//go:build !race

package prelude_test

const raceDetector = false
