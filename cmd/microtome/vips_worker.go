package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/vips"
)

// newWebP returns what encodes WebP, nil when the child's program isn't there.
func newWebP() decode.WebPEncoder {
	path, err := vips.Find()
	if err != nil {
		return nil
	}
	return vips.New(vips.Options{Path: path})
}

// newVipsWorkerCmd runs the child by hand, to see whether it is there and
// starts.
func newVipsWorkerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "vips-worker",
		Short:  "Run the child process that writes WebP by libvips",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := vips.Find()
			if err != nil {
				return fmt.Errorf("WebP needs libvips in a program of its own, built by `go build -tags vips ./cmd/%s`: %w", vips.Worker, err)
			}
			child := exec.CommandContext(cmd.Context(), path)
			child.Stdin, child.Stdout, child.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
			child.Env = append(os.Environ(), "VIPS_BLOCK_UNTRUSTED=1", "VIPS_CONCURRENCY=1")
			return child.Run()
		},
	}
}
