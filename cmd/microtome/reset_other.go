//go:build !unix

package main

import "os"

// resetSignals ask devices on again: here nothing does but a restart.
var resetSignals []os.Signal
