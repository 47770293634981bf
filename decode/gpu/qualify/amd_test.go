//go:build cgo && linux

package qualify

import "testing"

// An AMD device with a defect fails, as an NVIDIA device does.
func TestAMDDefectsFail(t *testing.T) {
	dir := fakes(t, "amd")
	for _, defect := range []string{"sample", "swap", "poison", "odd"} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			r := on(t, "amd", dir, "defect="+defect)
			if r.Passed() || r.First() == nil {
				t.Fatal("it passes")
			}
			t.Logf("%s: %s", r.First().Name, r.First().Reason)
		})
	}
}
