package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
)

// SoakOptions say how a device is worn.
type SoakOptions struct {
	Slide   microtome.Slide
	CPU     microtome.Decoder
	Encoder microtome.Encoder
	Device  microtome.Device
	Tiles   int64  // until so many were asked for
	Broken  int    // one stream in so many is damaged, another each round
	Seed    uint64 // of which, and how
	// Memory is what the process and the device's worker hold, in bytes.
	Memory   func() int64
	Progress func(string)
}

// SoakReport is what came of it.
type SoakReport struct {
	Tiles   int64 `json:"tiles"`
	Damaged int64 `json:"damaged"`
	// Refused were damaged and failed, as on the CPU; Sound were damaged and decode
	// without complaint, to the CPU's pixels.
	Refused int64 `json:"refused"`
	Sound   int64 `json:"sound"`
	// Wrong differ from the CPU's pixels, or fail where the CPU does not, or the
	// other way round.
	Wrong   int64                 `json:"wrong"`
	Device  microtome.DeviceStats `json:"device"`
	Memory  []int64               `json:"memory"` // after each round
	Rounds  int                   `json:"rounds"`
	Seconds float64               `json:"seconds"`
}

type soak struct {
	o   SoakOptions
	g   microtome.Grid
	sum []uint32 // of each tile, as the CPU makes it
	rep *SoakReport
}

// Soak asks for all tiles of level 0 again and again, some damaged, and holds every
// answer against the CPU's.
func Soak(ctx context.Context, o SoakOptions) (*SoakReport, error) {
	s := &soak{o: o, g: o.Slide.Info().Levels[0].Grid, rep: &SoakReport{}}
	s.sum = make([]uint32, s.g.Cols*s.g.Rows)
	plain, err := s.reader(nil)
	if err != nil {
		return nil, err
	}
	err = s.each(ctx, func(from, to int) error { return s.learn(ctx, plain, from, to) })
	if err = errors.Join(err, plain.Close()); err != nil {
		return nil, err
	}
	for s.rep.Tiles < o.Tiles && ctx.Err() == nil {
		if err := s.round(ctx); err != nil {
			return nil, fmt.Errorf("round %d: %w (the device is %s %s)", s.rep.Rounds, err, o.Device.Stats().State, o.Device.Stats().Why)
		}
	}
	s.rep.Device = o.Device.Stats()
	return s.rep, ctx.Err()
}

func (s *soak) reader(d microtome.Device) (*tiles.Reader, error) {
	o := tiles.Options{Decoder: s.o.CPU, Encoder: s.o.Encoder, PixelBytes: 64 << 20}
	if d != nil {
		o.Devices = []microtome.Device{d}
	}
	return tiles.New(o)
}

// each calls work for batches of all tiles, several at once.
func (s *soak) each(ctx context.Context, work func(from, to int) error) error {
	const batch = 64
	var next atomic.Int64
	errs := make([]error, runtime.NumCPU())
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for errs[i] == nil && ctx.Err() == nil {
				to := int(next.Add(batch))
				if to-batch >= len(s.sum) {
					return
				}
				errs[i] = work(to-batch, min(to, len(s.sum)))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// patches are the tiles [from, to) as patches of one tile each.
func (s *soak) patches(slide microtome.Slide, from, to int) []tiles.Patch {
	var list []tiles.Patch
	for i := from; i < to; i++ {
		at := s.g.TileRect(i%s.g.Cols, i/s.g.Cols)
		list = append(list, tiles.Patch{Slide: slide, Region: tiles.Region{L0X: int64(at.Min.X), L0Y: int64(at.Min.Y), Width: s.g.TileWidth, Height: s.g.TileHeight}})
	}
	return list
}

// learn keeps the checksums of the CPU's pixels.
func (s *soak) learn(ctx context.Context, rd *tiles.Reader, from, to int) error {
	got, _, err := rd.Patches(ctx, s.patches(s.o.Slide, from, to), tiles.PatchOptions{Channels: 3})
	if err != nil {
		return err
	}
	for i := range got {
		if got[i].Err != nil {
			return got[i].Err
		}
		s.sum[from+i] = sumOf(got[i].Pixels)
		got[i].Pixels.Release()
	}
	return nil
}

// round asks for every tile once.
func (s *soak) round(ctx context.Context) error {
	bad := &damagedSlide{Slide: s.o.Slide, seed: s.o.Seed + uint64(s.rep.Rounds), oneIn: uint64(s.o.Broken)}
	rd, err := s.reader(s.o.Device)
	if err != nil {
		return err
	}
	plain, err := s.reader(nil)
	if err != nil {
		return err
	}
	err = s.each(ctx, func(from, to int) error { return s.hold(ctx, rd, plain, bad, from, to) })
	if err = errors.Join(err, rd.Close(), plain.Close()); err != nil {
		return err
	}
	s.rep.Rounds++
	s.rep.Memory = append(s.rep.Memory, s.o.Memory())
	if s.rep.Rounds%20 == 0 && s.o.Progress != nil {
		s.o.Progress(fmt.Sprintf("%d tiles, %d damaged, %d wrong, %d MiB", s.rep.Tiles, s.rep.Damaged, s.rep.Wrong, s.rep.Memory[s.rep.Rounds-1]>>20))
	}
	return nil
}

// hold asks the device for tiles and holds them against the CPU's.
func (s *soak) hold(ctx context.Context, rd, plain *tiles.Reader, bad *damagedSlide, from, to int) error {
	list := s.patches(bad, from, to)
	a, res, _, err := rd.DevicePatches(ctx, list, tiles.DeviceOptions{PatchOptions: tiles.PatchOptions{Channels: 3}, Host: true, NoAhead: true})
	if err != nil {
		return err
	}
	defer a.Release()
	size := int(a.Bytes()) / len(list)
	for i := range list {
		sum := crc32.ChecksumIEEE(a.Host()[i*size:][:size])
		atomic.AddInt64(&s.rep.Tiles, 1)
		if !bad.broken(from + i) {
			if res[i].Err != nil || sum != s.sum[from+i] {
				atomic.AddInt64(&s.rep.Wrong, 1)
			}
			continue
		}
		atomic.AddInt64(&s.rep.Damaged, 1)
		if err := s.damaged(ctx, plain, list[i:i+1], res[i].Err, sum); err != nil {
			return err
		}
	}
	return nil
}

// damaged holds what the device made of a damaged stream against what the CPU does.
func (s *soak) damaged(ctx context.Context, plain *tiles.Reader, p []tiles.Patch, failed error, sum uint32) error {
	want, _, err := plain.Patches(ctx, p, tiles.PatchOptions{Channels: 3})
	if err != nil {
		return err
	}
	if want[0].Pixels != nil {
		defer want[0].Pixels.Release()
	}
	switch {
	case want[0].Err != nil && failed != nil:
		atomic.AddInt64(&s.rep.Refused, 1)
	case want[0].Err == nil && failed == nil && sumOf(want[0].Pixels) == sum:
		atomic.AddInt64(&s.rep.Sound, 1)
	default:
		atomic.AddInt64(&s.rep.Wrong, 1)
	}
	return nil
}

// damagedSlide is a slide some of whose tiles of level 0 are damaged, the same ones
// for the same seed.
type damagedSlide struct {
	microtome.Slide
	seed, oneIn uint64
}

// rand is a tile's own source. Neighbours must not resemble each other, which they do
// with seeds that differ by one.
func (d *damagedSlide) rand(tile int) *rand.Rand {
	const golden = 0x9e3779b97f4a7c15
	return rand.New(rand.NewPCG(d.seed*golden, (uint64(tile)+1)*golden))
}

func (d *damagedSlide) broken(tile int) bool { return d.rand(tile).Uint64N(d.oneIn) == 0 }

// ReadTile implements microtome.Slide.
func (d *damagedSlide) ReadTile(ctx context.Context, level, plane, col, row int) (microtome.Tile, error) {
	t, err := d.Slide.ReadTile(ctx, level, plane, col, row)
	i := row*d.Info().Levels[0].Cols + col
	if err == nil && level == 0 && d.broken(i) {
		t.Data = damage(d.rand(i), t.Data)
	}
	return t, err
}

// damage breaks a stream in one of the ways in which files break.
func damage(r *rand.Rand, data []byte) []byte {
	r.Uint64() // what broken drew
	from := min(len(data)-1, len(data)/4)
	at := from + r.IntN(len(data)-from)
	switch r.IntN(5) {
	case 0: // cut off
		return data[:at]
	case 1: // one bit
		data[at] ^= 1 << r.IntN(8)
	case 2: // a run of zeros, as of a lost block
		clear(data[at:min(len(data), at+512)])
	case 3: // other data
		for i := at; i < min(len(data), at+64); i++ {
			data[i] = byte(r.Uint32())
		}
	case 4: // a marker where none belongs
		data[at] = 0xff
	}
	return data
}
