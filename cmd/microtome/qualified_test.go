//go:build cgo && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/microtome/microtome/decode/gpu/fake"
)

// passes are the verdicts on the fakes, of which each vendor's is made once.
var passes sync.Map

type pass struct {
	once       sync.Once
	name       string
	text, said []byte
	err        error
}

// passesOf is a folder with the pass of a vendor's fakes, of whatever folder: they are
// built alike.
func passesOf(t *testing.T, vendor string) string {
	t.Helper()
	v, _ := passes.LoadOrStore(vendor, new(pass))
	p := v.(*pass)
	p.once.Do(func() {
		dir, libraries := t.TempDir(), t.TempDir()
		if p.err = fake.Libraries(vendor, libraries); p.err != nil {
			return
		}
		cmd := exec.Command("microtome", "doctor", "--qualify", "--device", vendor, "--device-libraries", libraries, "--qualification-dir", dir)
		cmd.Env = append(os.Environ(), fake.Env+"=") // whatever the test plants
		if p.said, p.err = cmd.CombinedOutput(); p.err != nil {
			return
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		p.name = filepath.Base(files[0])
		p.text, p.err = os.ReadFile(files[0])
	})
	if p.err != nil {
		t.Fatalf("the fakes are not qualified: %v\n%s", p.err, p.said)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, p.name), p.text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
