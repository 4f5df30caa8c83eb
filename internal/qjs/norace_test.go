//go:build !race

package qjs

const raceEnabled = false
