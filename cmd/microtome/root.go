package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The exit codes, part of the command line's contract.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a failure of how the program was called. It ends with
// exitUsage instead of exitFailed.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// run is the whole program: it returns the exit code. When ctx ends, what runs
// stops cleanly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false
	root := newRoot(&started)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "microtome: %v\n", err)
	var usage *usageError
	if !started || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Try '%s --help'.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// newRoot builds the command tree. started is set once a command's own work
// begins: an error before that is the caller's (arguments, flags).
func newRoot(started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:           "microtome",
		Short:         "Serve whole-slide images straight from the scanner's files",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("microtome {{.Version}}\n")
	root.AddCommand(commands()...)
	markStart(root, started)
	return root
}

// commands lists the verbs in the order of the help.
func commands() []*cobra.Command {
	return []*cobra.Command{newServeCmd(), newInfoCmd(), newRegionCmd(), newSynthCmd(), newVerifyCmd(), newBenchCmd(), newDoctorCmd(), newBenchWorkerCmd(), newVipsWorkerCmd(), newGPUWorkerCmd(), newHealthCmd()}
}

// markStart makes every command say when its own work begins.
func markStart(c *cobra.Command, started *bool) {
	if inner := c.RunE; inner != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return inner(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		markStart(sub, started)
	}
}

// version is set by the linker (-X main.version=...), and empty otherwise.
var version string

// buildVersion says which build this is: what the linker set, else the module's
// version, which holds the commit.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

func versionText() string {
	return fmt.Sprintf("%s (%s %s/%s)", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
