//go:build !linux

package bash_test

const hostCommand = "test-host"

func runHost([]string) {}
