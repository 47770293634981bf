//go:build vips && cgo

// Command microtome-vips-worker writes the picture formats that the server
// can't: it reads pixels on its standard input and answers on its output. The
// server starts it; it is of no use by hand.
package main

import (
	"fmt"
	"os"

	"github.com/microtome/microtome/decode/vips/worker"
)

func main() {
	if err := worker.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "microtome-vips-worker:", err)
		os.Exit(1)
	}
}
