package prompt

import "strings"

// Identity is what harness:identity says.
var Identity = strings.TrimSpace(identityText)
