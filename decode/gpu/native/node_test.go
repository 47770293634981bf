//go:build cgo && linux

package native

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// links makes a folder of links.
func links(t *testing.T, to ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, target := range to {
		if err := os.Symlink(target, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A GPU's render node is the one at its PCI address; a partition, whose node has
// none, has none.
func TestNodeOf(t *testing.T) {
	sys := t.TempDir()
	for node, device := range map[string]string{
		"renderD128": "../../../0000:03:00.0", "renderD130": "../../../0000:c3:00.0", "renderD131": "../../../platform/amdgpu_xcp_0",
	} {
		dir := filepath.Join(sys, node)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(device, filepath.Join(dir, "device")); err != nil {
			t.Fatal(err)
		}
	}
	for pci, want := range map[string]int{"0000:03:00.0": 0, "0000:c3:00.0": 2, "0000:83:00.0": -1, "03:00.0": -1, "": -1} {
		if got := nodeOf(sys, pci); got != want {
			t.Errorf("%q has node %d, not %d", pci, got, want)
		}
	}
	if got := nodeOf(sys+"/none", "0000:03:00.0"); got != -1 {
		t.Errorf("node %d without any", got)
	}
}

// The node that rocJPEG has opened is told from those that HIP had open before: the
// first one in place of the GPU's own is seen, and so is none.
func TestTheNodeThatWasOpened(t *testing.T) {
	const first, third = "/dev/dri/renderD128", "/dev/dri/renderD130"
	hip := links(t, first, third, "/dev/null", "socket:[1]")
	for name, c := range map[string]struct {
		after string
		ours  int
		want  int
	}{
		"the GPU's own":        {links(t, first, third, third), 2, 2},
		"the first one":        {links(t, first, third, first), 2, 0},
		"both":                 {links(t, first, third, first, third), 2, 0},
		"none":                 {links(t, first, third, "/dev/dri/card0"), 2, -1},
		"one, and ours is not": {links(t, first, first, third), -1, 0},
		"nothing can be seen":  {links(t), -1, -1},
	} {
		if got := newerNode(hip, c.after, c.ours); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
