//go:build race

package bash_test

// runs is smaller here: the supervisor of a test with the race detector has one too.
const runs = 500
