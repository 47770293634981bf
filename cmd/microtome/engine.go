package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/tiles"
)

// engine is what makes answers of slides: the decoder and the reader over it.
type engine struct {
	cpu    *decode.CPU
	reader *tiles.Reader
}

// newEngine builds the engine. pyramids says whether levels may be built for
// slides that have none.
func newEngine(c *config, pyramids bool) (*engine, error) {
	cpu := decode.NewCPU(decode.Options{Workers: c.Workers, Queue: c.Queue, MaxPixels: c.MaxPixels, WebP: newWebP()})
	o := tiles.Options{
		Decoder: cpu, Encoder: cpu,
		AnswerBytes: int64(c.AnswersMemory), PixelBytes: int64(c.PixelsMemory),
		MakingBytes: int64(c.BatchMemory), MaxPixels: c.MaxPixels, Background: c.background(), Quality: c.Quality,
	}
	if pyramids {
		o.PyramidDir, o.PyramidBytes = pyramidDir(c), int64(c.PyramidSize)
	}
	reader, err := tiles.New(o)
	if err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return &engine{cpu: cpu, reader: reader}, nil
}

func (e *engine) close() error { return errors.Join(e.reader.Close(), e.cpu.Close()) }

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
