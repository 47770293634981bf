package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/tiles"
)

// engine is what makes answers of slides: the decoder and the reader over it.
type engine struct {
	cpu     *decode.CPU
	devices []microtome.Device
	chosen  string // why auto chose what it did
	reader  *tiles.Reader
}

// newEngine builds the engine. pyramids says whether levels may be built for
// slides that have none. A device that was asked for and can't be used is an error.
func newEngine(ctx context.Context, c *config, pyramids bool) (*engine, error) {
	cpu := decode.NewCPU(decode.Options{Workers: c.Workers, Queue: c.Queue, MaxPixels: c.MaxPixels, WebP: newWebP()})
	devices, chosen, err := openDevices(ctx, c, cpu)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--device %s: %w", c.Device, err), cpu.Close())
	}
	o := tiles.Options{
		Devices: devices, Decoder: cpu, Encoder: cpu,
		AnswerBytes: int64(c.AnswersMemory), PixelBytes: int64(c.PixelsMemory),
		MakingBytes: int64(c.BatchMemory), MaxPixels: c.MaxPixels, Background: c.background(), Quality: c.Quality,
	}
	if pyramids {
		o.PyramidDir, o.PyramidBytes = pyramidDir(c), int64(c.PyramidSize)
	}
	reader, err := tiles.New(o)
	if err != nil {
		return nil, errors.Join(err, closeDevices(devices), cpu.Close())
	}
	return &engine{cpu: cpu, devices: devices, chosen: chosen, reader: reader}, nil
}

// close ends the engine. The devices decode by the CPU what they can't: it is last.
func (e *engine) close() error {
	return errors.Join(e.reader.Close(), closeDevices(e.devices), e.cpu.Close())
}

func pyramidDir(c *config) string {
	if c.PyramidDir != "" {
		return c.PyramidDir
	}
	return filepath.Join(cacheDir(), "pyramids")
}

// cacheDir is the user's cache folder for us; a server without a home gets one
// in the folder for temporary files.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "microtome")
}
