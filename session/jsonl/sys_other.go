//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package jsonl

func gone(int) bool { return false }

func isFull(error) bool { return false }

func isReadOnly(error) bool { return false }
