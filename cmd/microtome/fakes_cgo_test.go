//go:build cgo && linux

package main

import (
	"testing"

	"github.com/microtome/microtome/decode/gpu/fake"
)

// fakeVendors are those whose libraries can be faked.
func fakeVendors() []string { return fake.Vendors() }

// fakeLibraries builds fakes of a GPU vendor's libraries; "" where there is no
// engine to use them.
func fakeLibraries(t *testing.T, vendor string) string {
	dir := t.TempDir()
	if err := fake.Libraries(vendor, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
