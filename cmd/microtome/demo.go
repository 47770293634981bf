package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/microtome/microtome/synth"
)

// demoSlide returns the path of the synthetic slide that is served when nothing
// else is. It is made once, in the user's cache folder, and again when a newer
// build describes it differently.
func demoSlide(ctx context.Context, out io.Writer) (string, error) {
	spec := synth.Demo()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %+v", buildVersion(), spec))
	path := filepath.Join(cacheDir(), fmt.Sprintf("demo-%x", sum[:6]), "demo.svs")
	if _, err := os.Stat(path); err == nil {
		fmt.Fprintln(out, "No slides were named: serving a synthetic one.")
		return path, nil
	}
	fmt.Fprintln(out, "No slides were named: making a synthetic one, which takes some seconds, once.")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := errors.Join(synth.WriteFile(path, spec, nil), ctx.Err()); err != nil {
		return "", err
	}
	return path, nil
}
