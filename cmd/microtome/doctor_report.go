package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/microtome/microtome/decode/gpu"
)

// doctorReport is what doctor found, in the shape of its JSON. Sizes are bytes.
type doctorReport struct {
	Build   string         `json:"build"`
	CanRun  bool           `json:"can_run"`
	Reason  string         `json:"reason,omitempty"` // why not, and what to do
	Vendors []doctorVendor `json:"vendors"`
	Host    *doctorHost    `json:"host,omitempty"`
}

type doctorVendor struct {
	Vendor    string          `json:"vendor"`
	Title     string          `json:"-"`
	CanRun    bool            `json:"can_run"`
	Reason    string          `json:"reason,omitempty"`
	OnPCI     int             `json:"pci_gpus"`         // -1: unknown
	Beware    []string        `json:"beware,omitempty"` // what installs and will not run
	Libraries []doctorLibrary `json:"libraries"`
	Devices   []doctorDevice  `json:"devices"`
}

type doctorLibrary struct {
	Role    string   `json:"role"`
	Looked  []string `json:"looked_for"`
	File    string   `json:"file,omitempty"`
	Version string   `json:"version,omitempty"`
	Error   string   `json:"error,omitempty"`
}

type doctorDevice struct {
	Device          string         `json:"device"` // as --device names it
	Name            string         `json:"name"`
	PCI             string         `json:"pci"`
	Driver          string         `json:"driver,omitempty"`
	API             string         `json:"api"` // the newest that the driver knows
	Decoder         string         `json:"decoder"`
	MemoryBytes     int64          `json:"memory_bytes"`
	FreeBytes       int64          `json:"free_bytes"`
	Arch            string         `json:"arch"`
	Kernels         string         `json:"kernels"` // what they were compiled for
	KernelsFit      bool           `json:"kernels_fit"`
	Engines         int            `json:"jpeg_engines"`
	Multiprocessors int            `json:"multiprocessors"`
	Error           string         `json:"error,omitempty"` // why it can't be opened; the rest is not known then
	Settings        doctorSettings `json:"settings"`
	Limits          *doctorLimits  `json:"tiles,omitempty"` // of devices that were opened
	Proof           *doctorProof   `json:"proof,omitempty"` // likewise
}

// doctorSettings are how serve uses the device by default.
type doctorSettings struct {
	Lanes      int   `json:"lanes"`
	Batch      int   `json:"batch"`
	ArenaBytes int64 `json:"arena_bytes"` // for tiles and batches
	RingBytes  int64 `json:"ring_bytes"`  // of the host
}

type doctorLimits struct {
	MinSide   int              `json:"min_side"` // pixels
	MaxSide   int              `json:"max_side"`
	Samplings []doctorSampling `json:"samplings"`
}

type doctorSampling struct {
	Name string `json:"name"`
	By   string `json:"by"`            // gpu, cpu
	Why  string `json:"why,omitempty"` // by the CPU
}

type doctorProof struct {
	Passed bool   `json:"passed"`
	Tiles  int    `json:"tiles"`
	Reason string `json:"reason,omitempty"`
}

// doctorHost is what bounds the memory that server and worker share; null: no
// limit.
type doctorHost struct {
	RingBytes   int64  `json:"ring_bytes"`
	MemfdError  string `json:"memfd_error,omitempty"`
	LockedBytes *int64 `json:"locked_memory_bytes"`
	MemoryBytes *int64 `json:"memory_limit_bytes"`
}

func doctorLibraryOf(l gpu.Library) doctorLibrary {
	return doctorLibrary{Role: l.Role, Looked: l.Looked, File: l.File, Version: l.Version, Error: l.Why}
}

func doctorLimitsOf(l gpu.Limits) *doctorLimits {
	if len(l.Samplings) == 0 {
		return nil
	}
	d := &doctorLimits{MinSide: l.MinSide, MaxSide: l.MaxSide}
	for _, s := range l.Samplings {
		by := doctorSampling{Name: s.Name, By: "gpu"}
		if s.Why != nil {
			by.By, by.Why = "cpu", s.Why.Error()
		}
		d.Samplings = append(d.Samplings, by)
	}
	return d
}

func doctorHostOf(h gpu.Host, o gpu.Settings) *doctorHost {
	if !h.Known {
		return nil
	}
	d := &doctorHost{RingBytes: o.Ring}
	if h.Memfd != nil {
		d.MemfdError = h.Memfd.Error()
	}
	if h.Locked >= 0 {
		d.LockedBytes = &h.Locked
	}
	if h.Memory >= 0 {
		d.MemoryBytes = &h.Memory
	}
	return d
}

// tooSmall says which limit of the host's the ring breaks, "" for none. pin: it
// could not be pinned. Not every driver counts that as locked memory, so that a low
// limit is no reason otherwise.
func (h *doctorHost) tooSmall(pin bool) string {
	switch {
	case h == nil:
	case h.MemoryBytes != nil && *h.MemoryBytes < 2*h.RingBytes:
		return "raise the container's memory limit of " + sizeText(*h.MemoryBytes) + ", of which the ring takes " + sizeText(h.RingBytes)
	case pin && h.LockedBytes != nil && *h.LockedBytes < h.RingBytes:
		return "raise the limit of locked memory (ulimit -l), " + sizeText(*h.LockedBytes) + ", above the ring's " + sizeText(h.RingBytes)
	}
	return ""
}

// print writes the report for a reader.
func (r *doctorReport) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range r.Vendors {
		r.Vendors[i].print(t)
	}
	r.Host.print(t)
	return t.Flush()
}

func (h *doctorHost) print(t io.Writer) {
	if h == nil {
		return
	}
	memfd := sizeText(h.RingBytes) + " in a memfd"
	if h.MemfdError != "" {
		memfd = "can't be made: " + h.MemfdError
	}
	fmt.Fprintf(t, "host\n  ring\t%s\n", memfd)
	fmt.Fprintf(t, "  locked memory\t%s\n", limitText(h.LockedBytes))
	fmt.Fprintf(t, "  container's memory\t%s\n", limitText(h.MemoryBytes))
}

func (v *doctorVendor) print(t io.Writer) {
	state := "can run"
	if !v.CanRun {
		state = "can't run: " + v.Reason
	}
	fmt.Fprintf(t, "%s\n  engine\t%s\n", v.Title, state)
	if v.OnPCI >= 0 {
		fmt.Fprintf(t, "  PCI bus\t%d GPUs of %s\n", v.OnPCI, v.Title)
	}
	for _, b := range v.Beware {
		fmt.Fprintf(t, "  beware\t%s\n", b)
	}
	for _, l := range v.Libraries {
		fmt.Fprintf(t, "  %s\t%s\n", l.Role, libraryText(&l))
	}
	for i := range v.Devices {
		v.Devices[i].print(t)
	}
}

func libraryText(l *doctorLibrary) string {
	text := l.File
	if text == "" {
		text = "not opened; " + lookedText(l.Looked)
	}
	if l.Version != "" {
		text += ", version " + l.Version
	}
	if l.Error != "" && l.File != "" {
		text += ": " + l.Error
	}
	return text
}

func (d *doctorDevice) print(t io.Writer) {
	fmt.Fprintf(t, "%s\n  name\t%s at %s\n", d.Device, d.Name, d.PCI)
	fit := "fit"
	if !d.KernelsFit {
		fit = "do not fit"
	}
	fmt.Fprintf(t, "  driver\t%s\n", strings.TrimPrefix(d.Driver+", "+d.API, ", "))
	fmt.Fprintf(t, "  compute\t%s, %d multiprocessors; the kernels, of %s, %s\n", d.Arch, d.Multiprocessors, d.Kernels, fit)
	if d.Error != "" {
		fmt.Fprintf(t, "  memory\t%s\n  opened\tno: %s\n", sizeText(d.MemoryBytes), d.Error)
		return
	}
	fmt.Fprintf(t, "  memory\t%s, %s free\n", sizeText(d.MemoryBytes), sizeText(d.FreeBytes))
	fmt.Fprintf(t, "  JPEG engines\t%d (%s)\n", d.Engines, d.Decoder)
	s := d.Settings
	fmt.Fprintf(t, "  by default\t%s for tiles and batches, %d lanes, %d tiles a call\n", sizeText(s.ArenaBytes), s.Lanes, s.Batch)
	if l := d.Limits; l != nil {
		fmt.Fprintf(t, "  tiles\t%d to %d pixels a side; all others on the CPU\n", l.MinSide, l.MaxSide)
		fmt.Fprintf(t, "  on the GPU\t%s\n", l.by("gpu"))
		fmt.Fprintf(t, "  on the CPU\t%s\n", l.by("cpu"))
	}
	switch p := d.Proof; {
	case p == nil:
		fmt.Fprintf(t, "  proof\tnot asked for\n")
	case p.Passed:
		fmt.Fprintf(t, "  proof\tpassed: %d tiles have libjpeg-turbo's pixels\n", p.Tiles)
	default:
		fmt.Fprintf(t, "  proof\tfailed: %s\n", p.Reason)
	}
}

// by lists the samplings that the GPU or the CPU decodes.
func (l *doctorLimits) by(who string) string {
	var names []string
	for _, s := range l.Samplings {
		switch {
		case s.By != who:
		case s.Why != "":
			names = append(names, s.Name+" ("+s.Why+")")
		default:
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ", ")
}

func limitText(n *int64) string {
	if n == nil {
		return "no limit"
	}
	return "at most " + sizeText(*n)
}

// sizeText is a number of bytes in the largest unit that it fills.
func sizeText(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(unit.bytes)), ".0") + " " + unit.name
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
