//go:build cgo && linux

package main

import (
	"testing"

	"github.com/microtome/microtome/decode/gpu/fake"
)

// fakeLibraries builds fakes of the GPU vendor's libraries; "" where there is no
// engine to use them.
func fakeLibraries(t *testing.T) string {
	dir := t.TempDir()
	if err := fake.NVIDIA(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
