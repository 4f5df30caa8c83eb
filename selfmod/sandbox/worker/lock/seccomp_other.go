//go:build linux && !amd64 && !arm64

package lock

import "runtime"

func restrictCalls() string { return "off: no list of calls for " + runtime.GOARCH }
