package settings

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dsh-go/dsh/limits"
)

// named are the limits that tags may name. A duration is whole milliseconds.
var named = map[string]float64{
	"AgentParallel":     limits.AgentParallel,
	"AgentParallelMax":  limits.AgentParallelMax,
	"AgentRetriesMax":   limits.AgentRetriesMax,
	"AgentStepsMax":     limits.AgentStepsMax,
	"AgentTokensMax":    limits.AgentTokensMax,
	"BashPassEnv":       limits.BashPassEnv,
	"CallTimeout":       millis(limits.CallTimeout),
	"CallTimeoutMax":    millis(limits.CallTimeoutMax),
	"CallTimeoutMin":    millis(limits.CallTimeoutMin),
	"FSRoots":           limits.FSRoots,
	"LLMRetries":        limits.LLMRetries,
	"MaxCallTimeout":    millis(limits.MaxCallTimeout),
	"MaxCallTimeoutMax": millis(limits.MaxCallTimeoutMax),
	"Name":              limits.Name,
	"PermissionRules":   limits.PermissionRules,
	"PromptText":        limits.PromptText,
	"VMMemoryMB":        limits.VMMemoryMB,
	"VMMemoryMBMax":     limits.VMMemoryMBMax,
	"VMMemoryMBMin":     limits.VMMemoryMBMin,
	"VMTimeout":         millis(limits.VMTimeout),
	"VMTimeoutMax":      millis(limits.VMTimeoutMax),
	"VMTimeoutMin":      millis(limits.VMTimeoutMin),
	"WebURL":            limits.WebURL,
	"WorkerMemoryMB":    limits.WorkerMemoryMB,
	"WorkerMemoryMBMax": limits.WorkerMemoryMBMax,
	"WorkerMemoryMBMin": limits.WorkerMemoryMBMin,
}

func millis(d time.Duration) float64 { return float64(d.Milliseconds()) }

// number reads a number of a tag: digits, or the name of a limit.
func number(text string) (float64, error) {
	if v, ok := named[text]; ok {
		return v, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number, and no limit that tags may name", text)
	}
	return v, nil
}
