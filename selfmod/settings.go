package selfmod

import (
	"fmt"
	"time"
)

// Settings are the config of the toolset in a cordis.yml document.
type Settings struct {
	VMTimeoutMs      int `json:"vmTimeoutMs" min:"VMTimeoutMin" max:"VMTimeoutMax" default:"VMTimeout" doc:"Longest time of one entry into mounted code inside the engine, in milliseconds."`
	CallTimeoutMs    int `json:"callTimeoutMs" min:"CallTimeoutMin" max:"CallTimeoutMax" default:"CallTimeout" doc:"Longest time of a whole entry, waiting included, in milliseconds; mounting too."`
	MaxCallTimeoutMs int `json:"maxCallTimeoutMs" min:"CallTimeoutMin" max:"MaxCallTimeoutMax" default:"MaxCallTimeout" doc:"What a tool's own timeoutMs may raise callTimeoutMs to, in milliseconds; not below callTimeoutMs."`
	MemoryMB         int `json:"memoryMB" min:"VMMemoryMBMin" max:"VMMemoryMBMax" default:"VMMemoryMB" doc:"Memory of one mount, in MiB."`
	WorkerMemoryMB   int `json:"workerMemoryMB" min:"WorkerMemoryMBMin" max:"WorkerMemoryMBMax" doc:"Memory of the worker beyond its size at start, in MiB (Linux). Where it is not given it is enough for a mount of memoryMB."`
}

// CheckSettings says what is wrong beyond the types.
func (s Settings) CheckSettings(fault func(path []string, message string)) {
	if s.MaxCallTimeoutMs < s.CallTimeoutMs {
		fault([]string{"maxCallTimeoutMs"}, fmt.Sprintf("maxCallTimeoutMs (%d) must not be below callTimeoutMs (%d)", s.MaxCallTimeoutMs, s.CallTimeoutMs))
	}
	if s.WorkerMemoryMB != 0 && s.WorkerMemoryMB < s.MemoryMB {
		fault([]string{"workerMemoryMB"}, fmt.Sprintf("workerMemoryMB (%d) must not be below memoryMB (%d): the worker holds all mounts", s.WorkerMemoryMB, s.MemoryMB))
	}
}

// Config is what the settings say, on top of what a program gives.
func (s Settings) Config(given Config) Config {
	given.VMTimeout = time.Duration(s.VMTimeoutMs) * time.Millisecond
	given.CallTimeout = time.Duration(s.CallTimeoutMs) * time.Millisecond
	given.MaxCallTimeout = time.Duration(s.MaxCallTimeoutMs) * time.Millisecond
	given.MemoryMB, given.WorkerMemoryMB = s.MemoryMB, s.WorkerMemoryMB
	return given
}
