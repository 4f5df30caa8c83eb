// Package file gives a model the tools read, write, edit, glob and grep, and
// refuses to let it change what it has not read.
package file
