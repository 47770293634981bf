package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is where a run was made.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Kernel string `json:"kernel,omitempty"`
	Go     string `json:"go"`
	Build  string `json:"build"`
	// Load is the load average when the run began: figures of a busy machine
	// are worth less.
	Load string `json:"load,omitempty"`
}

// ThisMachine describes the machine; build is our version.
func ThisMachine(build string) Machine {
	m := Machine{CPU: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Build: build}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(b), " ")
	}
	return m
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s %s, load %s; microtome %s (%s)", m.CPU, m.Cores, m.System, m.Kernel, m.Load, m.Build, m.Go)
}
