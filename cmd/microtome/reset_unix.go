//go:build unix

package main

import (
	"os"
	"syscall"
)

// resetSignals ask devices on again.
var resetSignals = []os.Signal{syscall.SIGUSR1}
