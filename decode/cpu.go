// Package decode turns stored tiles into pixels and pixels into pictures, on the
// CPU, a bounded number at once.
package decode

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/raw"
)

// Options configure a CPU decoder. The zero value is a good one.
type Options struct {
	Workers int // decodes that run at once; 0: GOMAXPROCS
	Queue   int // sampler jobs that may wait before more are refused; 0: 256, or 128 a worker
	// MaxPixels bounds a stored tile, and an answer; 0: 2^26 (8192 x 8192).
	MaxPixels int64
	// WebP encodes what neither libjpeg-turbo nor Go can; nil: unsupported.
	WebP WebPEncoder
}

// WebPEncoder makes a WebP picture of 8-bit rows with 1, 3 or 4 samples a pixel.
type WebPEncoder interface {
	EncodeWebP(ctx context.Context, pix []byte, w, h, channels, quality int, icc []byte) ([]byte, error)
	Close() error
}

// CPU decodes and encodes on the CPU. It implements microtome.Decoder and
// microtome.Encoder. Its pixels lie in memory that is used again after their
// last Release.
type CPU struct {
	workers   int
	maxPixels int64
	gate      *gate
	buffers   microtome.Buffers
	counters  counters
	raw       raw.Decoder
	webp      WebPEncoder
}

var (
	_ microtome.Decoder = (*CPU)(nil)
	_ microtome.Encoder = (*CPU)(nil)
)

// NewCPU makes a decoder. Close it after the last call.
func NewCPU(o Options) *CPU {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Queue <= 0 {
		o.Queue = max(256, 128*o.Workers)
	}
	if o.MaxPixels <= 0 {
		o.MaxPixels = 1 << 26
	}
	d := &CPU{workers: o.Workers, maxPixels: o.MaxPixels, webp: o.WebP}
	d.gate = newGate(o.Workers, o.Queue, func() { d.counters.drops.Add(1) })
	return d
}

// Name says what decodes JPEG.
func (d *CPU) Name() string { return jpegName() }

// Exact says whether JPEG pixels are libjpeg-turbo's, bit for bit: false in a
// build without cgo.
func (d *CPU) Exact() bool { return jpegExact }

// CanReduce says whether Job.Reduce is honoured for a codec.
func (d *CPU) CanReduce(c microtome.Codec) bool {
	return c == microtome.CodecJPEG && jpegExact || c == microtome.CodecJPEG2000 && hasJPEG2000
}

// Close ends the WebP child, when there is one.
func (d *CPU) Close() error {
	if d.webp == nil {
		return nil
	}
	return d.webp.Close()
}

// DecodeBatch decodes jobs, as many at once as there are workers. A single job
// runs on the caller's goroutine.
func (d *CPU) DecodeBatch(ctx context.Context, jobs []microtome.Job) []microtome.Result {
	results := make([]microtome.Result, len(jobs))
	n := min(len(jobs), d.workers)
	if n <= 1 {
		for i := range jobs {
			results[i] = d.one(ctx, &jobs[i])
		}
		return results
	}
	var (
		next atomic.Int64
		done sync.WaitGroup
	)
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(jobs)); i = next.Add(1) - 1 {
			results[i] = d.one(ctx, &jobs[i])
		}
	}
	for range n - 1 {
		done.Go(work)
	}
	work()
	done.Wait()
	return results
}

// one decodes a job when it is its turn.
func (d *CPU) one(ctx context.Context, j *microtome.Job) microtome.Result {
	p, err := d.plan(j)
	if err != nil {
		return microtome.Result{Err: d.counters.fail(err)}
	}
	u := j.Urgency
	if u == nil {
		u = microtome.NewUrgency(j.Priority)
	}
	if err := d.gate.acquireUrgent(ctx, u); err != nil {
		return microtome.Result{Err: d.counters.fail(err)}
	}
	defer d.gate.release()
	pix, err := d.decode(j, p)
	if err != nil {
		return microtome.Result{Err: d.counters.fail(err)}
	}
	switch {
	case j.Reduce > 0:
		d.counters.reduced.Add(1)
	case p.whole:
		d.counters.full.Add(1)
	default:
		d.counters.partial.Add(1)
	}
	return microtome.Result{Pixels: pix}
}
