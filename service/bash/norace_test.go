//go:build !race

package bash_test

const runs = 2000
