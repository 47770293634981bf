package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu"
)

// gpuWorker is the command of the engine's child process.
func gpuWorker() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, "gpu-worker"}, nil
}

// newGPUWorkerCmd is the child that owns a GPU.
func newGPUWorkerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "gpu-worker",
		Short:  "Execute the server's work on a GPU (started by the server)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(resetSignals) > 0 {
				signal.Ignore(resetSignals...) // of the server; some send it to all of a service
			}
			return gpu.Work(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// openDevices opens the devices that were asked for: none for the CPU. why says
// what auto chose.
func openDevices(ctx context.Context, c *config, cpu microtome.Decoder) (list []microtome.Device, why string, err error) {
	if c.Device == "" {
		return nil, "", nil
	}
	d, err := parseDevice(c.Device)
	if err != nil || d.kind == "cpu" {
		return nil, "", err
	}
	if d.kind != "auto" {
		list, err = openVendor(ctx, d.kind, d.indexes, c, cpu)
		return list, "", err
	}
	var whys []string
	for _, v := range gpuVendors() {
		if list, err = openVendor(ctx, v.name, nil, c, cpu); err == nil {
			return list, "it is qualified, and its pixels are libjpeg-turbo's on all tiles of the proof", nil
		}
		whys = append(whys, err.Error())
	}
	return nil, strings.Join(whys, "; "), nil
}

// openVendor opens devices of a vendor, by default its first.
func openVendor(ctx context.Context, vendor string, indexes []int, c *config, cpu microtome.Decoder) (list []microtome.Device, err error) {
	worker, err := gpuWorker()
	if err != nil {
		return nil, err
	}
	there, err := lookFor(ctx, worker, vendor, c)
	if err != nil {
		return nil, err
	}
	if len(there.Devices) == 0 {
		return nil, fmt.Errorf("the driver has no %s device", vendor)
	}
	if len(indexes) == 0 {
		indexes = []int{0}
	}
	sample := c.DeviceSample
	if sample == 0 {
		sample = -1 // the engine's 0 is its default
	}
	for _, i := range indexes {
		if i >= len(there.Devices) {
			err = fmt.Errorf("there is no device %s:%d: the driver has %d", vendor, i, len(there.Devices))
			break
		}
		if err = there.qualified(i); err != nil {
			break
		}
		info := &there.Devices[i].Info
		var e microtome.Device
		e, err = gpu.Open(gpu.Options{Vendor: vendor, Index: i, Libraries: c.DeviceLibraries, CPU: cpu, Worker: worker,
			Batch: info.Batch,
			Arena: deviceBudget(c, info), Sample: sample})
		if err != nil {
			break
		}
		list = append(list, e)
	}
	if err != nil {
		return nil, errors.Join(err, closeDevices(list))
	}
	return list, nil
}

// deviceBudget is how much of a device's memory tiles and batches may take, in
// bytes.
func deviceBudget(c *config, i *gpu.Info) int64 {
	if c.DeviceMemory != 0 {
		return int64(c.DeviceMemory)
	}
	return i.Free / 2
}

func closeDevices(list []microtome.Device) error {
	var errs []error
	for _, d := range list {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
