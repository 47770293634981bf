//go:build cgo && linux

package native_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kernelsBy is the compiler that the embedded kernels come from. Others order
// instructions otherwise.
const kernelsBy = "clang version 19.1.7"

// The embedded kernels are what their source says.
func TestKernelsAreTheSources(t *testing.T) {
	for _, tool := range []string{"clang-19", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT CHECKED that the embedded PTX is what kernels.cu says: %v", err)
		}
	}
	version, err := exec.Command("clang-19", "--version").Output()
	if err != nil || !strings.Contains(string(version), kernelsBy) {
		t.Skipf("NOT CHECKED that the embedded PTX is what kernels.cu says: it was made by %s, here is %.60q (%v)", kernelsBy, version, err)
	}
	out := filepath.Join(t.TempDir(), "kernels.ptx")
	if text, err := exec.Command("make", "-s", "-C", "../../..", "kernels", "PTX="+out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	built, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := os.ReadFile("kernels_sm_75.ptx")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(built, embedded) {
		t.Error("kernels_sm_75.ptx is not what kernels.cu says: run make kernels, and prove it on a GPU")
	}
}
