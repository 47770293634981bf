//go:build cgo && linux

package gpu

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// What was known before a library failed, crashed or hung is told.
func TestLook(t *testing.T) { eachVendor(t, testLook) }

func testLook(t *testing.T, v *fakeVendor) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		faults       string
		step         Step // "": no trouble
		devices      int
		kind, code   int
		died, silent bool
	}{
		{faults: "", devices: 2},
		{faults: "@init:1:100", step: StepDriver, kind: wire.None, code: 100},
		{faults: "@init:1:crash", step: StepDriver, died: true},
		{faults: "@init:1:hang", step: StepDriver, silent: true},
		{faults: "@count:1:3", step: StepDriver, kind: wire.Lost, code: 3},
		{faults: "@device:1:crash", step: StepDevice, died: true},
		{faults: "@device:2:crash", step: StepDevice, devices: 1, died: true},
		{faults: "@device:2:hang", step: StepDevice, devices: 1, silent: true},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		s := Look(ctx, []string{self}, []string{workerEnv + "=1", fake.Env + "=" + v.calls.Replace(c.faults)}, v.name, v.dir)
		cancel()
		if len(s.Libraries) != 2 || s.Libraries[0].Version != v.version || s.Libraries[1].File == "" {
			t.Errorf("%s: libraries %+v", c.faults, s.Libraries)
		}
		if len(s.Devices) != c.devices {
			t.Errorf("%s: %d devices, want %d", c.faults, len(s.Devices), c.devices)
		}
		if c.step == "" {
			if s.Trouble != nil {
				t.Errorf("%s: %v", c.faults, s.Trouble)
			}
			continue
		}
		if g := s.Trouble; g == nil || g.Step != c.step || g.Kind != c.kind || g.Code != c.code || g.Died != c.died || g.Silent != c.silent {
			t.Errorf("%s: %+v", c.faults, g)
		}
	}
}

// A device that can't be opened does not hide the others.
func TestLookAtAllDevices(t *testing.T) { eachVendor(t, testLookAtAllDevices) }

func testLookAtAllDevices(t *testing.T, v *fakeVendor) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := Look(context.Background(), []string{self}, []string{workerEnv + "=1", fake.Env + "=" + v.calls.Replace("@device:1:46")}, v.name, v.dir)
	if s.Trouble != nil || len(s.Devices) != 2 || s.Devices[0].Trouble == nil || s.Devices[0].Trouble.Code != 46 || s.Devices[1].Trouble != nil {
		t.Fatalf("%+v", s)
	}
	if s.Devices[0].PCI == "" || s.Devices[1].Engines == 0 || !s.Devices[1].Fit || s.Devices[1].Kernels != v.kernels {
		t.Errorf("%+v", s.Devices)
	}
	o := testOptions(t, v, "@device:3:46")
	o.Index = 1
	if x := Examine(o); x.Trouble != nil {
		t.Errorf("device 1 does not open: %v", x.Trouble)
	}
	if s = Look(context.Background(), []string{"/none"}, nil, v.name, v.dir); s.Trouble == nil {
		t.Error("a worker that is not there is no trouble")
	}
}

func TestExamine(t *testing.T) { eachVendor(t, testExamine) }

func testExamine(t *testing.T, v *fakeVendor) {
	for faults, want := range map[string]Trouble{
		"@alloc:1:2":       {Step: StepOpen, Kind: wire.Memory, Code: 2},
		"@pin:1:1":         {Step: StepOpen, Kind: wire.Pin, Code: 1},
		"@module:1:crash":  {Step: StepOpen, Died: true},
		"@module:1:hang":   {Step: StepOpen, Silent: true},
		"@decode:2:flip":   {Step: StepProof},
		"@decode:1+:crash": {Step: StepProof, Died: true},
		"@decode:1+:hang":  {Step: StepProof, Silent: true},
	} {
		o := testOptions(t, v, faults)
		o.Start, o.Timeout, o.Quiet = time.Second, 500*time.Millisecond, true
		g := Examine(o).Trouble
		if g == nil || g.Step != want.Step || g.Kind != want.Kind || g.Code != want.Code || g.Died != want.Died || g.Silent != want.Silent {
			t.Errorf("%s: %+v", faults, g)
		}
	}
}

// Every sampling that canon has is told, under canon's name, and what a device does
// inexactly is the CPU's.
func TestLimits(t *testing.T) {
	odd := errors.New("not exact")
	l := limits(func(s canon.Sampling) error {
		if s == canon.S440 {
			return odd
		}
		return nil
	})
	got := map[string]error{}
	for _, s := range l.Samplings {
		got[s.Name] = s.Why
	}
	for s := canon.S444; s <= canon.Gray; s++ {
		why, told := got[s.String()]
		if !told || (why != nil) != (s == canon.S440) {
			t.Errorf("%s: told %t, %v", s, told, why)
		}
	}
	for _, name := range []string{"4:1:1", "4:1:0"} {
		if why := got[name]; why == nil || !strings.Contains(why.Error(), "sampling") {
			t.Errorf("%s: %v", name, why)
		}
	}
	if l.MinSide != canon.MinSide || l.MaxSide != canon.MaxSide || len(got) != len(l.Samplings) {
		t.Errorf("%+v", l)
	}
}
