//go:build !(vips && cgo)

// Command microtome-vips-worker, in this build, only says that it was built
// without libvips.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "microtome-vips-worker: built without libvips; build it with -tags vips")
	os.Exit(1)
}
