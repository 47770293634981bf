package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome/bench"
	"github.com/microtome/microtome/decode/gpu"
)

// runSoak wears a device with damaged streams among good ones.
func (f *benchFlags) runSoak(cmd *cobra.Command, o bench.DeviceOptions, settle func(bench.DeviceSettings) gpu.Options) (err error) {
	options := settle(o.Settings[0])
	options.Sample = 0 // the product's default: one in 1,000
	d, err := gpu.Open(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	ctx, cancel := context.WithTimeout(cmd.Context(), f.soakFor)
	defer cancel()
	start := time.Now()
	report, err := bench.Soak(ctx, bench.SoakOptions{
		Slide: o.Slides[0], CPU: o.CPU, Encoder: o.Encoder, Device: d, Tiles: f.soak, Broken: f.soakDamaged, Seed: f.protocol.Seed,
		Memory: familyMemory, Progress: o.Progress,
	})
	if report == nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	report.Seconds = time.Since(start).Seconds()
	if err := f.print(cmd, report, func(w io.Writer) error { return printSoak(w, report) }); err != nil {
		return err
	}
	if report.Wrong > 0 {
		return fmt.Errorf("%d of %d tiles were wrong", report.Wrong, report.Tiles)
	}
	return nil
}

func printSoak(w io.Writer, r *bench.SoakReport) error {
	fmt.Fprintf(w, "%s\n%d tiles in %d rounds, %.0f s: %.0f a second\n", r.Device.Name, r.Tiles, r.Rounds, r.Seconds, float64(r.Tiles)/r.Seconds)
	fmt.Fprintf(w, "damaged %d: refused %d, sound and as on the CPU %d\nwrong %d\n", r.Damaged, r.Refused, r.Sound, r.Wrong)
	fmt.Fprintf(w, "by the device %d, checked again on the CPU %d, deaths %d, state %s %s\n", r.Device.Decoded, r.Device.Checked, r.Device.Strikes, r.Device.State, r.Device.Why)
	if n := len(r.Memory); n > 0 {
		_, err := fmt.Fprintf(w, "memory of both processes: after round 1 %d MiB, the middle one %d, the last %d, most %d\n",
			r.Memory[0]>>20, r.Memory[n/2]>>20, r.Memory[n-1]>>20, slices.Max(r.Memory)>>20)
		return err
	}
	return nil
}

// familyMemory is what this process and its children hold in memory, shared pages
// counted by each.
func familyMemory() (bytes int64) {
	pids := []string{"self"}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, l := range lists {
		text, _ := os.ReadFile(l)
		pids = append(pids, strings.Fields(string(text))...)
	}
	for _, pid := range pids {
		text, _ := os.ReadFile("/proc/" + pid + "/statm")
		if f := strings.Fields(string(text)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			bytes += pages * int64(os.Getpagesize())
		}
	}
	return bytes
}
