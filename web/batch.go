package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/tiles"
	"github.com/microtome/microtome/web/patchwire"
	"github.com/microtome/microtome/web/route"
)

// batch is a request for patches under way: items are made by goroutines of the
// reader's and taken here, by one.
type batch struct {
	q      route.Batch
	asker  context.Context // the request's
	ctx    context.Context
	cancel context.CancelFunc
	slides map[string]used

	results []tiles.PatchResult // by item
	status  []patchwire.Status
	failed  []failure // by item; zero where the item has pixels
	done    []bool
	shape   patchwire.Shape

	made chan madeItem // closed when no more will come; nil then
	err  error         // of the whole, once made is closed

	broken error // why an answer that has begun can't be finished
}

// used is a slide in use by a batch, or why it can't be.
type used struct {
	handle *library.Handle
	err    error
}

// madeItem is an item that has come.
type madeItem struct {
	item, channels int
	res            tiles.PatchResult
}

func newBatch(ctx context.Context, q route.Batch) *batch {
	n := len(q.Items)
	b := &batch{q: q, asker: ctx, slides: map[string]used{},
		results: make([]tiles.PatchResult, n), status: make([]patchwire.Status, n), failed: make([]failure, n), done: make([]bool, n)}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.shape = patchwire.Shape{N: n, Height: q.Height, Width: q.Width, Channels: q.Channels, Planar: q.Planar, Fill: q.Fill, Type: q.Type, LUT: q.LUT}
	if b.shape.Channels == 0 {
		b.shape.Channels = 3
	}
	return b
}

// begin opens the slides and sets the reader to work. It returns when the first
// item has come, or that none will: then the shape is known.
func (b *batch) begin(lib Library, reader Reader) error {
	var ask []tiles.Patch
	var of []int // the item of each
	for i := range b.q.Items {
		it := &b.q.Items[i]
		u, err := b.open(lib, it.Slide)
		if err != nil {
			return err
		}
		if u.err != nil {
			b.fail(i, u.err)
			continue
		}
		ask, of = append(ask, b.patch(it, u.handle.Slide())), append(of, i)
	}
	if len(ask) == 0 {
		return nil
	}
	b.made = make(chan madeItem, len(ask))
	o := tiles.PatchOptions{Channels: b.q.Channels, Priority: microtome.PrioritySampler, Each: func(j, channels int, res tiles.PatchResult) {
		b.made <- madeItem{of[j], channels, res}
	}}
	go func() {
		defer close(b.made)
		defer func() {
			if p := recover(); p != nil {
				b.err = fmt.Errorf("panic while making patches: %v", p)
			}
		}()
		_, _, b.err = reader.Patches(b.ctx, ask, o)
	}()
	return b.take()
}

// open is the slide of an id, acquired once. The error is the whole batch's.
func (b *batch) open(lib Library, id string) (used, error) {
	if u, ok := b.slides[id]; ok {
		return u, nil
	}
	if len(b.slides) >= maxBatchSlides {
		return used{}, fmt.Errorf("more than %d slides: %w", maxBatchSlides, microtome.ErrLimit)
	}
	var u used
	u.handle, u.err = lib.Acquire(b.ctx, id)
	if err := b.ctx.Err(); err != nil && u.err != nil {
		return u, err
	}
	b.slides[id] = u
	return u, nil
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

// take takes the next item that comes. The error is the whole batch's.
func (b *batch) take() error {
	m, ok := <-b.made
	if !ok {
		b.made = nil
		return b.err
	}
	b.shape.Channels = m.channels
	if m.res.Err != nil {
		b.fail(m.item, m.res.Err)
		return nil
	}
	a := &m.res.Answer
	b.results[m.item], b.done[m.item] = m.res, true
	b.status[m.item] = patchwire.Status{Code: http.StatusOK, Made: uint8(a.Made), Hit: a.CacheHit, Level: a.Level, Engine: uint8(engineOf(a.Engine))}
	return nil
}

func (b *batch) fail(i int, err error) {
	f := explain(err, b.q.Items[i].Slide)
	if f.status == statusClientGone && b.asker.Err() == nil {
		f = givenUp
	}
	b.failed[i], b.done[i] = f, true
	b.status[i] = patchwire.Status{Code: f.status, Made: patchwire.NotMade}
}

// await returns when an item has come.
func (b *batch) await(i int) error {
	for !b.done[i] {
		if b.made == nil {
			return errMissing
		}
		if err := b.take(); err != nil {
			return err
		}
	}
	return nil
}

var errMissing = errors.New("an item was never made")

// all returns when all items have come.
func (b *batch) all() error {
	for i := range b.done {
		if err := b.await(i); err != nil {
			return err
		}
	}
	return nil
}

// written gives up an item's pixels.
func (b *batch) written(i int) {
	if px := b.results[i].Pixels; px != nil {
		px.Release()
		b.results[i].Pixels = nil
	}
}

// close ends the work, waits for it, and gives up what it held.
func (b *batch) close() {
	b.cancel()
	for b.made != nil {
		_ = b.take() // the client has been told of an error, or is gone
	}
	for i := range b.results {
		b.written(i)
	}
	for _, u := range b.slides {
		if u.handle != nil {
			u.handle.Release()
		}
	}
}
