package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/microtome/microtome/decode/gpu"
)

// surveyTime is long: a driver that was idle may take tens of seconds.
const surveyTime = 60 * time.Second

// surveyed is a vendor's devices, of which only those that are qualified are opened.
type surveyed struct {
	gpu.Survey
	vendor string
	c      *config
}

// lookFor asks a vendor's libraries what there is.
func lookFor(ctx context.Context, worker []string, vendor string, c *config) (*surveyed, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	s := &surveyed{Survey: gpu.Look(ctx, worker, nil, vendor, c.DeviceLibraries), vendor: vendor, c: c}
	if s.Trouble != nil {
		return nil, s.Trouble
	}
	return s, nil
}

// qualified refuses a device that has no pass for exactly this GPU, driver, libraries
// and binary, and says how one is had.
func (s *surveyed) qualified(i int) error {
	k, _, err := qualifiedForOf(&s.Survey, i)
	if err != nil {
		return err
	}
	why := qualificationDir(s.c.QualificationDir).why(&k)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s:%d (%s at %s) is not qualified: %s: run: %s", s.vendor, i, k.Name, k.PCI, why, s.command(i))
}

// command makes a pass.
func (s *surveyed) command(i int) string {
	words := []string{"microtome doctor --qualify --device", fmt.Sprintf("%s:%d", s.vendor, i)}
	if s.c.DeviceLibraries != "" {
		words = append(words, "--device-libraries", s.c.DeviceLibraries)
	}
	if s.c.QualificationDir != "" {
		words = append(words, "--qualification-dir", s.c.QualificationDir)
	}
	return strings.Join(words, " ")
}
