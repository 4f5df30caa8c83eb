//go:build unix && !linux

package bash

import "os"

func startChild(_ Config, shell string, s Spec, env []string, streams [3]*os.File) (child, error) {
	return startGroup(shell, s, env, streams)
}
