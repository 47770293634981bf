package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/microtome/microtome/synth"
)

// writeSlide writes a small SVS and the folders above it; another seed, other
// pixels.
func writeSlide(t *testing.T, path string, seed uint32) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(f, synth.Spec{Width: 700, Height: 500, Seed: seed}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
