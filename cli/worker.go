package cli

// runWorker is the process in which mounted code runs. It knows no command line:
// what it needs comes over its standard input.
func runWorker() int {
	return exitUsage
}
