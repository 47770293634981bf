package web

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
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
	x.items = len(q.Items)
	// Floats count as the pixels of uint8 that take as many bytes.
	most, one := s.opt.MaxPixels/int64(q.Type.Bytes()), int64(q.Width)*int64(q.Height)
	if one > most || int64(len(q.Items))*one > most {
		return fmt.Errorf("%d patches of %d x %d pixels, of at most %d of %s in all: %w", len(q.Items), q.Width, q.Height, most, q.Type, microtome.ErrLimit)
	}
	size := 3 * int64(len(q.Items)) * one * int64(q.Type.Bytes())
	// A slow client holds its answer until the last byte is written.
	if err := s.room.Take(r.Context(), size); err != nil {
		return err
	}
	defer s.room.Give(size)
	b := newBatch(r.Context(), q)
	defer b.close()
	if err := b.begin(s.opt.Library, s.opt.Reader); err != nil {
		return err
	}
	x.Header()["Cache-Control"] = headerNoStore
	switch {
	case q.Format == "raw" && q.Last:
		err = b.streamRaw(x)
	case q.Format == "raw":
		err = b.writeRaw(x)
	case q.Format == "npy" && second:
		err = b.streamParts(x)
	case q.Format == "npy" && wantsTrailers(r):
		err = b.streamNPY(x)
	case q.Format == "npy":
		err = b.writeNPY(x)
	default:
		err = s.writePictures(x, b)
	}
	if err == nil && x.err == nil {
		x.failed = patchwire.Failed(b.status)
		s.metrics.patches(x.items, x.failed)
	}
	return err
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
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return route.Batch{}, &microtome.Unsupported{Tag: "Content-Encoding", Value: "other than identity"}
	}
	var over *http.MaxBytesError
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, r.Body, maxBatchBody))
	switch {
	case errors.As(err, &over):
		return route.Batch{}, fmt.Errorf("a body of more than %d bytes: %w", maxBatchBody, microtome.ErrLimit)
	case err != nil:
		return route.Batch{}, fmt.Errorf("the body could not be read: %w", microtome.ErrMalformed)
	}
	return route.ParseBatch(body)
}

// pictures encodes the items, as many at once as there are processors.
func (s *server) pictures(b *batch) [][]byte {
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
			if out[i], err = s.picture(b, px, format); err != nil {
				b.fail(int(i), err)
			}
			b.written(int(i))
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

// picture encodes pixels. A panic is this item's failure: on a goroutine of its
// own it would end the process.
func (s *server) picture(b *batch, px microtome.Pixels, f microtome.Format) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.LogAttrs(b.ctx, slog.LevelError, "panic", slog.String("route", routePatches.String()),
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = errPanic
		}
	}()
	return s.opt.Reader.EncodePixels(b.ctx, px, f, b.q.Quality)
}
