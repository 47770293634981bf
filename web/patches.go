package web

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/tiles"
	"github.com/microtome/microtome/web/patchwire"
	"github.com/microtome/microtome/web/route"
)

const (
	// maxBatchBody bounds the body of a batch's request.
	maxBatchBody = 4 << 20
	// maxBatchSlides bounds the slides that one batch holds open.
	maxBatchSlides = 256
	// maxBatchWaiting bounds the batches that wait for room.
	maxBatchWaiting = 64
)

// batch is a request for patches under way.
type batch struct {
	q       route.Batch
	results []tiles.PatchResult // by item
	status  []patchwire.Status
	failed  []failure // by item; zero where the item has pixels
	shape   patchwire.Shape
}

// patches answers POST /patches.
func (s *server) patches(x *exchange, r *http.Request) error {
	x.route = routePatches
	if r.Method != http.MethodPost {
		return errPostOnly
	}
	second, err := parseStatuses(r.URL.RawQuery)
	if err != nil {
		return err
	}
	q, err := s.readBatch(x, r)
	if err != nil {
		return err
	}
	if second && q.Format != "npy" {
		return fmt.Errorf("statuses=1 is for npy: %w", microtome.ErrMalformed)
	}
	size := int64(len(q.Items)) * int64(q.Width) * int64(q.Height)
	if int64(q.Width)*int64(q.Height) > s.opt.MaxPixels || size > s.opt.MaxPixels {
		return fmt.Errorf("%d patches of %d x %d pixels, of at most %d in all: %w", len(q.Items), q.Width, q.Height, s.opt.MaxPixels, microtome.ErrLimit)
	}
	release, err := s.room.take(r.Context(), 3*size)
	if err != nil {
		return err
	}
	defer release()
	b := &batch{q: q}
	defer b.release()
	if err := s.makeBatch(r.Context(), b); err != nil {
		return err
	}
	s.metrics.patches(len(q.Items), patchwire.Failed(b.status))
	h := x.Header()
	h["Cache-Control"] = headerNoStore
	x.set("Microtome-Failed", strconv.Itoa(patchwire.Failed(b.status)))
	switch {
	case q.Format == "raw":
		return b.writeRaw(x)
	case q.Format == "npy" && !second:
		return b.writeNPY(x, r)
	case q.Format == "npy":
		return b.writeParts(x)
	}
	return s.writePictures(x, r, b)
}

// parseStatuses reads the query: statuses=1 asks for them as a second part.
func parseStatuses(raw string) (second bool, err error) {
	var p route.Pixels
	err = parsePixels(raw, &p, func(key, value string) (bool, error) {
		if key != "statuses" {
			return false, nil
		}
		n, err := route.Count(key, value, 0, 1)
		second = n == 1
		return true, err
	})
	if err == nil && p != (route.Pixels{}) {
		err = fmt.Errorf("only statuses stands in the address, the rest in the body: %w", microtome.ErrMalformed)
	}
	return second, err
}

// readBatch reads and parses the request's body.
func (s *server) readBatch(x *exchange, r *http.Request) (route.Batch, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return route.Batch{}, &microtome.Unsupported{Tag: "Content-Type", Value: "other than application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, r.Body, maxBatchBody))
	switch {
	case isTooLarge(err):
		return route.Batch{}, fmt.Errorf("a body of more than %d bytes: %w", maxBatchBody, microtome.ErrLimit)
	case err != nil:
		return route.Batch{}, fmt.Errorf("the body could not be read: %w", microtome.ErrMalformed)
	}
	return route.ParseBatch(body)
}

// used is a slide in use by a batch, or why it can't be.
type used struct {
	handle *library.Handle
	err    error
}

// makeBatch opens the slides and makes the pixels. What concerns an item alone
// becomes its status.
func (s *server) makeBatch(ctx context.Context, b *batch) error {
	slides := map[string]used{}
	defer func() {
		for _, u := range slides {
			if u.handle != nil {
				u.handle.Release()
			}
		}
	}()
	n := len(b.q.Items)
	b.status, b.failed, b.results = make([]patchwire.Status, n), make([]failure, n), make([]tiles.PatchResult, n)
	var ask []tiles.Patch
	var of []int // the item of each
	for i := range b.q.Items {
		it := &b.q.Items[i]
		u, seen := slides[it.Slide]
		if !seen {
			if len(slides) >= maxBatchSlides {
				return fmt.Errorf("more than %d slides: %w", maxBatchSlides, microtome.ErrLimit)
			}
			u.handle, u.err = s.opt.Library.Acquire(ctx, it.Slide)
			if err := ctx.Err(); err != nil {
				return err
			}
			slides[it.Slide] = u
		}
		if u.err != nil {
			b.fail(i, u.err)
			continue
		}
		ask, of = append(ask, b.patch(it, u.handle.Slide())), append(of, i)
	}
	got, channels, err := s.opt.Reader.Patches(ctx, ask, tiles.PatchOptions{Channels: b.q.Channels, Priority: microtome.PrioritySampler})
	if err != nil {
		return err
	}
	for j, res := range got {
		b.results[of[j]] = res
		b.done(of[j], &res)
	}
	if len(ask) == 0 && b.q.Channels == 0 {
		channels = 3
	}
	b.shape = patchwire.Shape{N: n, Height: b.q.Height, Width: b.q.Width, Channels: channels, Planar: b.q.Planar, Fill: b.q.Fill}
	return nil
}

// patch is an item as the reader takes it.
func (b *batch) patch(it *route.BatchItem, slide microtome.Slide) tiles.Patch {
	at := frame(slide.Info(), b.q.Bounds).Min
	return tiles.Patch{
		Slide: slide, C: it.C, Z: it.Z, T: it.T, Background: it.Background,
		Region: tiles.Region{L0X: it.L0X + int64(at.X), L0Y: it.L0Y + int64(at.Y), Width: b.q.Width, Height: b.q.Height,
			Scale: tiles.Scale{Kind: scaleKinds[it.Scale], Value: it.Value, Tolerance: b.q.Tolerance}},
	}
}

// done notes what became of an item.
func (b *batch) done(i int, res *tiles.PatchResult) {
	if res.Err != nil {
		b.fail(i, res.Err)
		return
	}
	a := &res.Answer
	b.status[i] = patchwire.Status{Code: http.StatusOK, Made: uint8(a.Made), Hit: a.CacheHit, Level: a.Level}
}

func (b *batch) fail(i int, err error) {
	f := explain(err, b.q.Items[i].Slide)
	b.failed[i] = f
	b.status[i] = patchwire.Status{Code: f.status, Made: patchwire.NotMade}
}

// release gives up the pixels that have not been written.
func (b *batch) release() {
	for i := range b.results {
		if px := b.results[i].Pixels; px != nil {
			px.Release()
			b.results[i].Pixels = nil
		}
	}
}

// pictures encodes the items, as many at once as there are processors.
func (s *server) pictures(ctx context.Context, b *batch) [][]byte {
	format := formatOf(b.q.Format)
	out := make([][]byte, len(b.results))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(out)); i = next.Add(1) - 1 {
			px := b.results[i].Pixels
			if px == nil {
				continue
			}
			var err error
			if out[i], err = s.opt.Reader.EncodePixels(ctx, px, format, b.q.Quality); err != nil {
				b.fail(int(i), err)
			}
			px.Release()
			b.results[i].Pixels = nil
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(out)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return out
}
