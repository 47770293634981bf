package tiles

import (
	"context"
	"fmt"
	"hash/fnv"
	"image"
	"io"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

// device is the way of a batch through a device: its tiles are loaded into the
// device's memory, kept there behind an LRU of their own, and laid together there.
type device struct {
	microtome.Device
	kept *cache.Cache[tileKey, microtome.Pixels]
	// room bounds the bytes of tiles and answers of batches under way: half of the
	// device's memory, so that they can always be had.
	room *Budget
	// life counts the losses of the device's memory. It is a part of the keys of
	// what is kept: a tile that was decoded before a loss may arrive after it.
	life atomic.Uint64
}

func newDevice(dev microtome.Device) *device {
	// What is kept gives way to what is under way.
	d := &device{Device: dev, kept: newPixelCache(dev.Memory()), room: NewBudget(dev.Memory()/2, 4*defaultBatches)}
	dev.Watch(d.kept.Evict, func() {
		d.life.Add(1)
		d.kept.Purge()
	})
	return d
}

// DeviceOptions say what the array of a batch is like.
type DeviceOptions struct {
	PatchOptions
	Layout microtome.Layout
	Type   microtome.DataType
	LUT    *microtome.LUT // see microtome.NewLUT
	Host   bool           // the array is wanted in host memory
	// NoAhead leaves a caller that scans patch by patch without tiles loaded ahead.
	NoAhead bool
}

// DevicePatches makes patches of one size as one array in a device's memory, in
// their order, with the pixels that Patches makes. An item fails alone and is
// background then; the results have no Pixels. The error is of the whole batch: as
// for Patches, and microtome.ErrDeviceLost when there is no device, or none that
// works, ErrLimit when the batch is too large for it.
func (r *Reader) DevicePatches(ctx context.Context, items []Patch, o DeviceOptions) (microtome.DeviceArray, []PatchResult, int, error) {
	if o.Channels != 0 && o.Channels != 1 && o.Channels != 3 || len(items) == 0 {
		return nil, nil, 0, fmt.Errorf("%d items of %d channels: %w", len(items), o.Channels, microtome.ErrMalformed)
	}
	b := &batch{r: r, items: make([]patch, len(items)), channels: o.Channels, priority: o.Priority}
	b.plan(items)
	d := b.device()
	if d == nil || !d.Ready() {
		return nil, nil, 0, microtome.ErrDeviceLost
	}
	if len(items) == 1 && b.items[0].err == nil && !o.NoAhead {
		defer r.ahead.begin()()
		r.ahead.saw(b.items[0].plan, d)
	}
	a, err := d.make(ctx, b, o)
	if err != nil {
		return nil, nil, 0, err
	}
	results := make([]PatchResult, len(items))
	for i := range results {
		results[i] = b.items[i].deviceResult(d, b.channels)
	}
	return a, results, b.channels, nil
}

// device is where one array of all items is made: where the first slide's tiles are
// kept.
func (b *batch) device() *device {
	for i := range b.items {
		if p := &b.items[i]; p.plan != nil {
			return b.r.deviceOf(p.plan.req.p.info)
		}
	}
	if len(b.r.devices) > 0 {
		return b.r.devices[0]
	}
	return nil
}

// warm loads the tiles under a request, for whoever asks for it next.
func (d *device) warm(ctx context.Context, r *Reader, q *request) {
	b := &batch{r: r, items: []patch{{plan: &regionPlan{req: *q}}}, channels: q.p.channels(), priority: microtome.PrioritySampler}
	g := newDeviceGather(d, b)
	defer g.release()
	if d.room.Take(ctx, g.bytes) != nil {
		return
	}
	defer d.room.Give(g.bytes)
	_ = g.load(ctx) // whoever asks will see why
}

// deviceResult tells how an item was made.
func (p *patch) deviceResult(d *device, channels int) PatchResult {
	if p.err != nil {
		return PatchResult{Err: p.err}
	}
	a := &Answer{Made: Rendered, Engine: p.engine, Width: p.plan.req.w, Height: p.plan.req.h, Channels: channels}
	if p.drawn == 0 {
		a.Made, a.Engine = Empty, "none"
	}
	a.Level, a.Downsample, a.MPP = p.plan.level, (p.plan.down[0]+p.plan.down[1])/2, p.plan.mpp
	a.CacheHit = p.hit && p.drawn > 0
	return PatchResult{Answer: *a}
}

// errSizes: the patches of a device's batch are of one size.
var errSizes = fmt.Errorf("patches of several sizes: %w", microtome.ErrMalformed)

// make loads the tiles of a batch that was planned, and makes its array.
func (d *device) make(ctx context.Context, b *batch, o DeviceOptions) (microtome.DeviceArray, error) {
	w, h := 0, 0
	for i := range b.items {
		p := &b.items[i]
		if p.err != nil {
			continue
		}
		if q := &p.plan.req; w == 0 {
			w, h = q.w, q.h
		} else if q.w != w || q.h != h {
			return nil, errSizes
		}
	}
	if w == 0 {
		return nil, b.items[0].err
	}
	g := newDeviceGather(d, b)
	cost := g.bytes + int64(w)*int64(h)*int64(b.channels)*int64(o.Type.Bytes())*int64(len(b.items))
	if cost > d.Memory()/2 {
		return nil, fmt.Errorf("%d bytes on a device of %d: %w", cost, d.Memory(), microtome.ErrLimit)
	}
	if err := d.room.Take(ctx, cost); err != nil {
		return nil, err
	}
	defer d.room.Give(cost)
	defer g.release()
	if err := g.load(ctx); err != nil {
		return nil, err
	}
	out := microtome.DeviceBatch{
		Width: w, Height: h, Channels: b.channels, Layout: o.Layout, Type: o.Type, LUT: o.LUT, Host: o.Host,
		Patches: make([]microtome.DevicePatch, len(b.items)),
	}
	for i := range b.items {
		g.lay(i, &out.Patches[i])
	}
	return d.Make(ctx, &out)
}

// lay says what an item is made of.
func (g *deviceGather) lay(i int, to *microtome.DevicePatch) {
	p := &g.b.items[i]
	n := &g.needs[i]
	if p.err == nil {
		p.err = g.failed(n)
	}
	if p.err != nil {
		return
	}
	q := &p.plan.req
	to.Fill = q.p.bg
	p.hit, p.engine = true, "gpu"
	if n.alone >= 0 {
		l := &g.loads[n.alone]
		p.drawn, p.hit, p.engine = l.drawn, false, "cpu"
		to.Pieces, to.Covered = []microtome.DevicePiece{{Pixels: l.px, From: image.Rect(0, 0, q.w, q.h)}}, true
		return
	}
	to.Pieces = make([]microtome.DevicePiece, 0, n.n)
	for _, u := range g.uses[n.first : n.first+n.n] {
		l := &g.loads[u.load]
		if l.blank {
			continue
		}
		p.drawn++
		p.hit = p.hit && l.hit
		if px, ok := l.px.(microtome.DevicePixels); ok && px.ByCPU() {
			p.engine = "cpu"
		}
		at := u.part.Add(n.off)
		to.Pieces = append(to.Pieces, microtome.DevicePiece{Pixels: l.px, From: u.part.Sub(q.p.cell(l.col, l.row).Min), X: at.Min.X, Y: at.Min.Y})
	}
	to.Covered = n.whole && len(to.Pieces) == n.n
	if n.filtered {
		to.Filter = q.deviceFilter(n.src)
	}
}

// deviceFilter is the area filter of a request over its whole source.
func (q *request) deviceFilter(src image.Rectangle) *microtome.DeviceFilter {
	taps := func(a axis, from int64, n, first int) []microtome.Tap {
		out := make([]microtome.Tap, n)
		weights := make([]uint32, 0, 4*n)
		for i := range out {
			var t tap
			at := len(weights)
			t, weights = a.appendTap(weights, from+int64(i), q.clamp)
			if len(t.weights) > 0 {
				out[i] = microtome.Tap{First: int(t.first) - first, Weights: weights[at:]}
			}
		}
		return out
	}
	return &microtome.DeviceFilter{
		Width: src.Dx(), Height: src.Dy(), Channels: q.p.channels(),
		Across: taps(q.ax, q.x0, q.w, src.Min.X), Down: taps(q.ay, q.y0, q.h, src.Min.Y),
	}
}

// maxDeviceAnswer bounds the array that is copied to the host at once.
const maxDeviceAnswer = 32 << 20

// onDevice makes the patches of a batch on devices, each slide's on its own, some
// at a time, and hands each over as host pixels. What is not done then is the
// CPU's: patches of several sizes, or of one item, and what was left when a device
// was lost or had no room.
func (b *batch) onDevice(ctx context.Context) {
	if len(b.r.devices) == 0 || len(b.items) < 2 {
		return
	}
	of := make(map[*device][]int, len(b.r.devices))
	for i := range b.items {
		if p := &b.items[i]; p.err == nil {
			d := b.r.deviceOf(p.plan.req.p.info)
			of[d] = append(of[d], i)
		}
	}
	var all sync.WaitGroup
	for d, list := range of {
		all.Go(func() { b.group(ctx, d, list) })
	}
	all.Wait()
}

// group makes items on one device.
func (b *batch) group(ctx context.Context, d *device, list []int) {
	first := &b.items[list[0]].plan.req
	for _, i := range list {
		if q := &b.items[i].plan.req; q.w != first.w || q.h != first.h {
			return
		}
	}
	each := int64(first.w * first.h * b.channels)
	if each > maxDeviceAnswer {
		return
	}
	for k := 0; k < len(list) && d.Ready(); {
		from, bytes := k, int64(0)
		for ; k < len(list) && (k == from || bytes < maxDeviceAnswer); k++ {
			// The source of a filter, and its lines of two bytes, lie there too.
			bytes += each + 3*b.items[list[k]].plan.req.bandCost()
		}
		if !b.part(ctx, d, list[from:k]) {
			return
		}
	}
}

// part makes some items. When the device can't, it returns false and leaves them
// as they were.
func (b *batch) part(ctx context.Context, d *device, list []int) bool {
	part := &batch{r: b.r, items: make([]patch, len(list)), channels: b.channels, priority: b.priority}
	for k, i := range list {
		part.items[k] = b.items[i]
	}
	a, err := d.make(ctx, part, DeviceOptions{Host: true})
	if err != nil {
		return false
	}
	var users atomic.Int32
	users.Store(int32(1 + len(list)))
	release := func() {
		if users.Add(-1) == 0 {
			a.Release()
		}
	}
	defer release()
	each := int(a.Bytes()) / len(list)
	for k, i := range list {
		p := &b.items[i]
		*p = part.items[k]
		if p.err != nil {
			release()
		} else {
			q := &p.plan.req
			p.px = microtome.NewHostPixels(a.Host()[k*each:(k+1)*each], q.w, q.h, b.channels, func([]byte) { release() })
		}
		b.made(i)
	}
	return true
}

// deviceOf is the device of a slide: the same on every server that has the same
// devices, and each slide moves as little as can be when one is added (rendezvous
// hashing).
func (r *Reader) deviceOf(info *microtome.Info) *device {
	var best *device
	var most uint64
	for _, d := range r.devices {
		h := fnv.New64a()
		_, _ = io.WriteString(h, d.Name()+" "+info.Generation.ID)
		// FNV's last bytes hardly reach its high bits: spread them.
		if sum := spread(h.Sum64()); best == nil || sum > most {
			best, most = d, sum
		}
	}
	return best
}

// spread mixes all bits of x (the finaliser of MurmurHash3).
func spread(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
