package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/bench"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
)

// runDevice measures a GPU: the grid of the first slide, patches at random over
// all.
func (f *benchFlags) runDevice(cmd *cobra.Command, paths []string) (err error) {
	ctx := cmd.Context()
	d, err := parseDevice(f.device)
	if err == nil && (d.kind == "cpu" || d.kind == "auto") || len(d.indexes) > 1 {
		err = usagef("--device %s: one device of a vendor's can be measured at once", f.device)
	}
	if err != nil {
		return err
	}
	cpu := decode.NewCPU(decode.Options{Queue: 1 << 20})
	defer func() { err = errors.Join(err, cpu.Close()) }()
	if f.soak < 0 || f.soakFor <= 0 || f.soakDamaged <= 0 {
		return usagef("--soak, --soak-for and --soak-damaged must be above 0")
	}
	f.protocol.ColdCache = f.coldCache << 20
	o := bench.DeviceOptions{
		Protocol: f.protocol, Machine: bench.ThisMachine(buildVersion()), CPU: cpu, Encoder: cpu, Random: f.protocol.Random, Exact: f.exact,
		Progress: func(what string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", what) },
	}
	if f.peers != "none" {
		o.Python, o.Path = f.python, paths[0]
	}
	for _, p := range paths {
		s, err := openSlide(ctx, p)
		if err != nil {
			return err
		}
		defer s.Close()
		o.Slides, o.Names = append(o.Slides, s), append(o.Names, filepath.Base(p))
	}
	if o.Settings, err = f.sweep(); err != nil {
		return err
	}
	settle, err := f.deviceOpener(ctx, d, cpu)
	if err != nil {
		return err
	}
	o.Open = func(s bench.DeviceSettings) (microtome.Device, error) { return gpu.Open(settle(s)) }
	o.Bare = func(s bench.DeviceSettings, tiles []microtome.Tile, span time.Duration) (float64, error) {
		return gpu.Bare(settle(s), tiles, span)
	}
	if f.soak > 0 {
		return f.runSoak(cmd, o, settle)
	}
	report, err := bench.RunDevice(ctx, o)
	if err != nil {
		return err
	}
	return f.print(cmd, report, report.Print)
}

// print writes a report as a table or JSON, and as JSON into the file asked for.
func (f *benchFlags) print(cmd *cobra.Command, report any, table func(io.Writer) error) error {
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return err
	}
	if f.jsonFile != "" {
		if err := writeOutput(f.jsonFile, cmd.OutOrStdout(), append(text, '\n')); err != nil {
			return err
		}
	}
	if f.asJSON {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
		return err
	}
	return table(cmd.OutOrStdout())
}

// deviceOpener turns a row's settings into the engine's options.
func (f *benchFlags) deviceOpener(ctx context.Context, d device, cpu microtome.Decoder) (func(bench.DeviceSettings) gpu.Options, error) {
	worker, err := gpuWorker()
	if err != nil {
		return nil, err
	}
	infos, err := gpu.Probe(ctx, worker, nil, d.kind, f.libraries)
	if err != nil {
		return nil, err
	}
	index := 0
	if len(d.indexes) > 0 {
		index = d.indexes[0]
	}
	if index >= len(infos) {
		return nil, fmt.Errorf("there is no device %s:%d: the driver has %d", d.kind, index, len(infos))
	}
	return func(s bench.DeviceSettings) gpu.Options {
		o := gpu.Options{Vendor: d.kind, Index: index, Libraries: f.libraries, CPU: cpu, Worker: worker, Arena: infos[index].Free / 4,
			Ring: 1 << 30, Lanes: s.Lanes, Batch: s.Batch, Cores: s.Cores, Unchecked: s.Unchecked, Blocking: s.Blocking, Profile: s.Profile, Beside: -1, Sample: -1}
		if s.Beside {
			o.Beside = 0
		}
		if s.InProcess {
			o.Worker = nil
		}
		return o
	}, nil
}

// sweep reads --sweep: settings such as "4x32", "4x32+beside+blocking".
func (f *benchFlags) sweep() ([]bench.DeviceSettings, error) {
	var out []bench.DeviceSettings
	for _, text := range strings.Split(f.settings, ",") {
		parts := strings.Split(text, "+")
		lanes, batch, _ := strings.Cut(parts[0], "x")
		var s bench.DeviceSettings
		var err, err2 error
		s.Lanes, err = strconv.Atoi(lanes)
		s.Batch, err2 = strconv.Atoi(batch)
		if err != nil || err2 != nil || s.Lanes < 1 || s.Batch < 1 {
			return nil, usagef("--sweep %s: settings such as 4x32 or 4x32+beside, for 4 lanes of 32 tiles", text)
		}
		for _, p := range parts[1:] {
			switch p {
			case "beside":
				s.Beside = true
			case "unchecked":
				s.Unchecked = true
			case "blocking":
				s.Blocking = true
			case "profile":
				s.Profile = true
			case "inprocess":
				s.InProcess = true
			default:
				if n, ok := strings.CutPrefix(p, "cores"); ok {
					if s.Cores, err = strconv.Atoi(n); err == nil && s.Cores > 0 {
						continue
					}
				}
				return nil, usagef("--sweep %s: %s is not beside, unchecked, blocking, profile, inprocess or coresN", text, p)
			}
		}
		out = append(out, s)
	}
	return out, nil
}
