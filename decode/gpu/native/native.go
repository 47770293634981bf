//go:build cgo && linux

// Package native is the C half of the GPU engine: the vendors' libraries, opened
// at run time, the lanes that execute messages, and the walk that finds corrupt
// streams. No vendor header is needed to build it.
package native

/*
#cgo CFLAGS: -O2 -std=gnu11
#cgo LDFLAGS: -ldl -lpthread
#cgo noescape mt_walk
#cgo nocallback mt_walk
#cgo noescape mt_engine_run
#cgo nocallback mt_engine_run
#include <stdlib.h>
#include "engine.h"
#include "walk.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// Info describes a device.
type Info = wire.Info

// Libraries opens a vendor's libraries, in the folder or, when that is "", the
// system's, and says where they were found. They may crash: call it in a child,
// and the functions below too.
func Libraries(vendor, folder string) ([]wire.Library, error) {
	v, err := table(vendor)
	if err != nil {
		return nil, err
	}
	dir := C.CString(folder)
	defer C.free(unsafe.Pointer(dir))
	var found [C.MT_LIBRARIES]C.mt_library
	out := make([]wire.Library, C.vendor_libraries(v, dir, &found[0]))
	for i := range out {
		c := &found[i]
		out[i] = wire.Library{
			Role: C.GoString(&c.role[0]), Looked: strings.Split(C.GoString(&c.looked[0]), "\n"), File: C.GoString(&c.file[0]),
			Version: C.GoString(&c.version[0]), Why: C.GoString(&c.why[0]), Absent: c.absent != 0,
		}
	}
	return out, nil
}

// Start opens a vendor's libraries, starts its driver, and returns how many
// devices that has.
func Start(vendor, folder string) (int, error) {
	v, err := table(vendor)
	if err != nil {
		return 0, err
	}
	dir := C.CString(folder)
	defer C.free(unsafe.Pointer(dir))
	var why [256]C.char
	if rc := C.vendor_load(v, dir, &why[0], C.size_t(len(why))); rc != 0 {
		return 0, &wire.Failure{Kind: int(rc), Code: int(C.vendor_last_code(v)), Text: C.GoString(&why[0])}
	}
	var n C.int
	if rc := C.vendor_count(v, &n); rc != 0 {
		return 0, &wire.Failure{Kind: int(rc), Code: int(C.vendor_last_code(v)), Text: "the driver does not say how many devices there are"}
	}
	return int(n), nil
}

// Describe says what a device is, once its vendor is started.
func Describe(vendor string, index int) (Info, error) {
	v, err := table(vendor)
	if err != nil {
		return Info{}, err
	}
	var c C.mt_gpu_info
	rc := C.vendor_info(v, C.int(index), &c)
	if rc != 0 {
		code := int(C.vendor_last_code(v))
		text := fmt.Sprintf("the driver's code %d", code)
		if why := C.GoString(&c.why[0]); why != "" {
			text = why
		}
		err = &wire.Failure{Kind: int(rc), Code: code, Text: fmt.Sprintf("device %d can't be opened: %s", index, text)}
	}
	return infoOf(vendor, &c), err
}

func infoOf(vendor string, c *C.mt_gpu_info) Info {
	o := Info{
		Vendor: vendor, Name: C.GoString(&c.name[0]), Arch: C.GoString(&c.arch[0]), PCI: C.GoString(&c.pci[0]),
		Driver: C.GoString(&c.driver[0]), Decoder: C.GoString(&c.decoder[0]),
		Memory: int64(c.memory), Free: int64(c.memory_free),
		Engines: int(c.jpeg_engines), Multiprocessors: int(c.multiprocessors),
		MinSide: int(c.min_side), MaxSide: int(c.max_side), Samplings: uint32(c.css), Tried: uint32(c.css_tried), Batch: int(c.batch),
	}
	for i := range c.libraries {
		if s := C.GoString(&c.libraries[i][0]); s != "" {
			o.Libraries = append(o.Libraries, s)
		}
	}
	o.Kernels, o.Fit = kernelsFor(o.Arch)
	return o
}

func table(vendor string) (*C.mt_vendor, error) {
	name := C.CString(vendor)
	defer C.free(unsafe.Pointer(name))
	v := C.mt_vendor_of(name)
	if v == nil {
		return nil, &wire.Failure{Kind: wire.Missing, Text: "this build has no engine for " + vendor}
	}
	return v, nil
}

// Options say how a device is opened.
type Options struct {
	Vendor, Libraries string
	Arch              string // of the device, as Describe tells it
	Index             int
	// Lanes decode, up to Batch tiles a call; CopyLanes come behind them and only
	// copy and lay.
	Lanes, CopyLanes, Batch int
	Arena                   int64  // bytes of device memory
	Blocking                bool   // threads sleep while they wait for the device
	Profile                 bool   // the device ends each stage before the next begins
	Ring                    []byte // mapped memory, which must outlive the device
}

// Device is an open device. A lane is used by one caller at a time.
type Device struct{ e *C.mt_engine }

// Open opens a device.
func Open(o Options) (*Device, error) {
	v, err := table(o.Vendor)
	if err != nil {
		return nil, err
	}
	dir := C.CString(o.Libraries)
	defer C.free(unsafe.Pointer(dir))
	kernels, forget := kernelsOf(o.Arch)
	defer forget()
	kernels.libraries = dir
	d := &Device{}
	opt := C.mt_options{
		libraries: dir, kernels: kernels, index: C.int(o.Index),
		lanes: C.int(o.Lanes), copy_lanes: C.int(o.CopyLanes), batch: C.int(o.Batch), arena: C.uint64_t(o.Arena),
		ring: unsafe.Pointer(unsafe.SliceData(o.Ring)), ring_bytes: C.uint64_t(len(o.Ring)),
	}
	if o.Blocking {
		opt.blocking = 1
	}
	if o.Profile {
		opt.profile = 1
	}
	var why [256]C.char
	if rc := C.mt_engine_open(v, &opt, &d.e, &why[0], C.size_t(len(why))); rc != 0 {
		return nil, &wire.Failure{Kind: int(rc), Code: int(C.vendor_last_code(v)), Text: C.GoString(&why[0])}
	}
	return d, nil
}

// Close gives the device back. No lane may be at work.
func (d *Device) Close() {
	C.mt_engine_close(d.e)
}

// Run executes the message at an offset of the ring. It returns a result of
// package wire.
func (d *Device) Run(lane int, at uint64) int {
	return int(C.mt_engine_run(d.e, C.int(lane), C.uint64_t(at)))
}

// Bare decodes the tiles of a message for so long and does nothing else with them.
// It returns how many tiles that were.
func (d *Device) Bare(lane int, at uint64, seconds float64) (int64, int) {
	var n C.uint64_t
	rc := C.mt_engine_bare(d.e, C.int(lane), C.uint64_t(at), C.double(seconds), &n)
	return int64(n), int(rc)
}

// Serve executes messages whose offsets arrive on a socket, until it ends. spin
// is how many microseconds a lane looks for the next before it sleeps.
func (d *Device) Serve(lane, fd, spin int) {
	C.mt_engine_serve(d.e, C.int(lane), C.int(fd), C.int(spin))
}

// WalkReasons name what Walk finds, by number.
var WalkReasons = [...]string{"", "a code that no table has", "data that end early", "data left over",
	"a marker out of place", "coefficients that no picture has", "a Huffman table that is none"}

// Walk follows a stream's entropy-coded data to their end and returns 0 when they
// are whole, else the number of a WalkReason.
func Walk(s *canon.Stream) int {
	c := C.mt_scan{
		scan: C.uint32_t(s.Scan), len: C.uint32_t(s.ScanLen),
		components: C.uint32_t(s.N), mcus: C.uint32_t(s.MCUs), restart: C.uint32_t(s.Restart),
	}
	for i := range s.N {
		k := &s.Components[i]
		c.blocks[i], c.dc_of[i], c.ac_of[i] = C.uint32_t(k.Blocks), C.uint32_t(k.DC), C.uint32_t(k.AC)
		c.quant[i] = C.uint32_t(s.Quant[k.Quant])
	}
	for i := range 2 {
		c.dc[i], c.dc_n[i] = C.uint32_t(s.DC[i].At), C.uint32_t(s.DC[i].N)
		c.ac[i], c.ac_n[i] = C.uint32_t(s.AC[i].At), C.uint32_t(s.AC[i].N)
	}
	return int(C.mt_walk((*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(s.Data))), &c))
}
