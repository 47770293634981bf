package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/wire"
)

const doctorLong = `Say what a GPU engine finds on this host: the vendor's libraries, each GPU, which
tiles it takes. Then open the engine as serve --device does and hold its pixels
against the CPU's. Exits with 1, and says what to do, when it can't run.

With --qualify a device is put to the proof instead: a battery of steps, each of
which holds what the GPU makes against the CPU's, to the last bit. What came of it
is kept, and serve --device uses only a GPU that has passed with this driver, these
libraries and this binary. The report is the same each time.

All that touches the vendor's libraries runs in a child: a library that crashes
or hangs is a finding.`

type doctorFlags struct {
	device, libraries string
	timeout           time.Duration
	json, qualify     bool
	qualificationDir  string
}

func newDoctorCmd() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether a GPU can decode here, or why not and what to do",
		Long:  doctorLong,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.device, "device", "auto", "what to open: auto for each vendor's first, nvidia, nvidia:0,1, amd, amd:0,1")
	fl.StringVar(&f.libraries, "device-libraries", "", "`folder` of the GPU vendor's libraries (default: the system's)")
	fl.BoolVar(&f.qualify, "qualify", false, "put the GPU to the proof and keep the verdict, which serve --device needs")
	fl.StringVar(&f.qualificationDir, "qualification-dir", "", "`folder` where verdicts are kept (default: in the user's cache folder)")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long all of it may take, with --qualify the GPU's start; a driver that was idle starts slowly")
	fl.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	d, err := parseDevice(f.device)
	if err == nil && d.kind == "cpu" {
		err = fmt.Errorf("device: cpu: a GPU's engine is examined: auto, nvidia or amd")
	}
	if err == nil && f.timeout <= 0 {
		err = errors.New("timeout: must be above 0")
	}
	if err != nil {
		return &usageError{err}
	}
	if f.qualify {
		return f.runQualify(cmd, d)
	}
	worker, err := gpuWorker()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	r := doctorReport{Build: versionText(), Host: doctorHostOf(gpu.OfHost(), gpu.Defaults())}
	bus := os.DirFS("/sys/bus/pci/devices")
	for _, v := range gpuVendors() {
		if d.kind != "auto" && d.kind != v.name {
			continue
		}
		e := examination{gpuVendor: v, flags: f, worker: worker, indexes: d.indexes, host: r.Host, onBus: onPCI(bus, v.pci)}
		r.Vendors = append(r.Vendors, e.examine(ctx))
	}
	r.conclude()
	if f.json {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.print(cmd.OutOrStdout())
	}
	if err == nil && !r.CanRun {
		err = errors.New(r.Reason)
	}
	return err
}

// examination is one vendor's.
type examination struct {
	gpuVendor
	flags   *doctorFlags
	worker  []string
	indexes []int // that were asked for; empty: the first
	host    *doctorHost
	onBus   int // GPUs of the vendor on the PCI bus, -1: unknown
}

// examine looks at the vendor's libraries and devices, and opens the devices
// that were asked for.
func (e *examination) examine(ctx context.Context) doctorVendor {
	s := gpu.Look(ctx, e.worker, nil, e.name, e.flags.libraries)
	v := doctorVendor{Vendor: e.name, Title: e.title, OnPCI: e.onBus, Libraries: []doctorLibrary{}, Devices: []doctorDevice{}}
	for _, l := range s.Libraries {
		v.Libraries = append(v.Libraries, doctorLibraryOf(l))
	}
	for i := range s.Devices {
		v.Devices = append(v.Devices, e.deviceOf(i, &s))
	}
	v.Beware = e.beware(&s)
	if s.Trouble != nil {
		v.Reason = e.trouble(s.Trouble, &s, nil)
		return v
	}
	if len(s.Devices) == 0 {
		v.Reason = "the driver starts, but has no device: " + e.noDevice
		return v
	}
	indexes := e.indexes
	if len(indexes) == 0 {
		indexes = []int{0}
	}
	v.CanRun = true
	for _, i := range indexes {
		if why := e.open(ctx, i, &s, v.Devices); why != "" && v.CanRun {
			v.CanRun, v.Reason = false, fmt.Sprintf("%s:%d: %s", e.name, i, why)
		}
	}
	return v
}

// open opens a device and notes what came of it. It returns why it can't be used.
func (e *examination) open(ctx context.Context, i int, s *gpu.Survey, devices []doctorDevice) string {
	if i >= len(devices) {
		return fmt.Sprintf("there is no such device: the driver has %d, numbered from 0: name another by --device", len(devices))
	}
	found, d := &s.Devices[i], &devices[i]
	x := gpu.Examined{Trouble: found.Trouble}
	if x.Trouble == nil {
		x = e.examined(ctx, i, &found.Info)
		d.Limits = doctorLimitsOf(x.Limits)
	}
	d.Proof = &doctorProof{Passed: x.Trouble == nil, Tiles: x.Tiles}
	if x.Trouble != nil {
		d.Proof.Reason = e.trouble(x.Trouble, s, found)
	}
	return d.Proof.Reason
}

// proofArena is what the proof takes of a device at most: the GPU may be in use.
const proofArena = 256 << 20

// examined is gpu.Examine that does not outlast ctx, whatever the driver does.
func (e *examination) examined(ctx context.Context, i int, info *gpu.Info) gpu.Examined {
	until, _ := ctx.Deadline()
	left := max(time.Until(until).Truncate(100*time.Millisecond), time.Millisecond)
	done := make(chan gpu.Examined, 1)
	go func() {
		cpu := decode.NewCPU(decode.Options{})
		x := gpu.Examine(gpu.Options{
			Vendor: e.name, Index: i, Libraries: e.flags.libraries, CPU: cpu, Worker: e.worker, Quiet: true, Sample: -1, Batch: info.Batch,
			Arena: min(deviceBudget(&config{}, info), proofArena), Start: left, Timeout: min(left, 4*time.Second),
		})
		if err := cpu.Close(); err != nil && x.Trouble == nil {
			x.Trouble = &gpu.Trouble{Step: gpu.StepProof, Err: err}
		}
		done <- x
	}()
	// The engine gives up at the same time and knows better why.
	const grace = 500 * time.Millisecond
	select {
	case x := <-done:
		return x
	case <-time.After(left + grace):
	case <-ctx.Done():
		select {
		case x := <-done:
			return x
		case <-time.After(grace):
		}
	}
	return gpu.Examined{Trouble: &gpu.Trouble{Step: gpu.StepOpen, Silent: true, Err: fmt.Errorf("it did not answer within %v", e.flags.timeout)}}
}

// deviceOf describes a device, and how serve would use it.
func (e *examination) deviceOf(i int, s *gpu.Survey) doctorDevice {
	f, o, driver, wrong := &s.Devices[i], gpu.Defaults(), "", ""
	if f.Trouble != nil {
		wrong = f.Trouble.Error()
	}
	for _, l := range s.Libraries {
		if l.Role == "driver" {
			driver = l.Version
		}
	}
	return doctorDevice{
		Device: fmt.Sprintf("%s:%d", e.name, i), Name: f.Name, PCI: f.PCI, Driver: driver, API: f.Driver, MemoryBytes: f.Memory, FreeBytes: f.Free,
		Arch: f.Arch, Kernels: f.Kernels, KernelsFit: f.Fit, Engines: f.Engines, Decoder: f.Decoder, Multiprocessors: f.Multiprocessors, Error: wrong,
		Settings: doctorSettings{Lanes: o.Lanes, Batch: cmp.Or(f.Batch, o.Batch), ArenaBytes: deviceBudget(&config{}, &f.Info), RingBytes: o.Ring},
	}
}

// trouble says in one line what went wrong, and what to do. found is the device it
// went wrong with, nil when that is all of them.
func (e *examination) trouble(t *gpu.Trouble, s *gpu.Survey, found *gpu.Found) string {
	what, remedy := e.advise(t, s, found, e.onBus)
	if pin := t.Kind == wire.Pin; t.Step == gpu.StepOpen && (t.Died || pin) {
		remedy = cmp.Or(e.host.tooSmall(pin), remedy)
	}
	// Open's errors begin with the device, and so does our line.
	if name, rest, ok := strings.Cut(what, ": "); ok && strings.HasPrefix(name, e.name+":") {
		what = rest
	}
	line := what
	if remedy != "" {
		line += ": " + remedy
	}
	return strings.ReplaceAll(line, "\n", "; ")
}

// onPCI counts the GPUs of a vendor among devices as Linux lists them, -1 when
// they can't be seen. A container sees its host's.
func onPCI(devices fs.FS, vendor string) int {
	list, err := fs.ReadDir(devices, ".")
	if err != nil {
		return -1
	}
	n := 0
	for _, d := range list {
		id, err := fs.ReadFile(devices, d.Name()+"/vendor")
		class, err2 := fs.ReadFile(devices, d.Name()+"/class")
		// Class 3 is display controllers: VGA, 3D and others. AMD's Instinct are 12,
		// accelerators.
		if err == nil && err2 == nil && strings.TrimSpace(string(id)) == vendor && (strings.HasPrefix(string(class), "0x03") || strings.HasPrefix(string(class), "0x12")) {
			n++
		}
	}
	return n
}

// conclude says whether an engine can run, and if not why.
func (r *doctorReport) conclude() {
	r.CanRun = slices.ContainsFunc(r.Vendors, func(v doctorVendor) bool { return v.CanRun })
	if r.CanRun {
		return
	}
	var why []string
	for _, v := range r.Vendors {
		why = append(why, v.Reason)
	}
	r.Reason = "no GPU engine can run here: " + strings.Join(why, "; ")
}
