package tiles

import (
	"context"
	"errors"
	"image"
	"sync/atomic"
	"testing"
	"time"

	"github.com/microtome/microtome"
)

// countedSlide is open while somebody holds it; reads after that are counted.
type countedSlide struct {
	*fakeSlide
	refs atomic.Int64
	late atomic.Int64
}

func (s *countedSlide) Hold() func() {
	s.refs.Add(1)
	return func() { s.refs.Add(-1) }
}

func (s *countedSlide) ReadTile(ctx context.Context, level, plane, col, row int) (microtome.Tile, error) {
	if s.refs.Load() <= 0 {
		s.late.Add(1)
		return microtome.Tile{}, microtome.ErrSource
	}
	return s.fakeSlide.ReadTile(ctx, level, plane, col, row)
}

// A load that its first asker left goes on for those who joined it by another
// handle of the same file: the first handle's slide stays open for it.
func TestLoadsHoldTheirSlide(t *testing.T) {
	fake := newFake("held", 3, 64, 64, image.Pt(512, 512))
	first, second := &countedSlide{fakeSlide: fake}, &countedSlide{fakeSlide: fake}
	e := &fakeEngine{gate: make(chan struct{})}
	r := newTestReader(t, e, func(o *Options) { o.PixelBytes = 0; o.AnswerBytes = 0 })
	q := Region{Width: 512, Height: 512, Scale: Scale{Kind: ByDownsample, Value: 1}}

	done := first.Hold()
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		_, err := r.Region(ctx, first, q, PixelOptions{Format: microtome.FormatRaw})
		done()
		left <- err
	}()
	for r.Stats().Decodes == 0 {
		time.Sleep(time.Millisecond)
	}
	defer second.Hold()()
	joined := make(chan error, 1)
	go func() {
		_, err := r.Region(context.Background(), second, q, PixelOptions{Format: microtome.FormatRaw})
		joined <- err
	}()
	for r.Stats().Regions.Joined == 0 {
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatalf("the first asker got %v", err)
	}
	close(e.gate)
	if err := <-joined; err != nil {
		t.Fatalf("the second asker got %v", err)
	}
	for first.refs.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
	if n := first.late.Load() + second.late.Load(); n != 0 {
		t.Errorf("%d reads of a slide that nobody held", n)
	}
}

// A pyramid is built long after the view that asked for it was answered.
func TestBuildsHoldTheirSlide(t *testing.T) {
	s := &countedSlide{fakeSlide: newFake("built", 3, 256, 256, image.Pt(2600, 2600))}
	r := newTestReader(t, &fakeEngine{}, func(o *Options) { o.PyramidDir = t.TempDir() })
	done := s.Hold()
	if _, err := r.View(context.Background(), s, View{Downsample: 8, Width: 325, Height: 325, Rect: image.Rect(0, 0, 256, 256)}, PixelOptions{}); err != nil {
		t.Fatal(err)
	}
	done()
	for r.Stats().Pyramids.Built == 0 && r.Stats().Pyramids.Failed == 0 {
		time.Sleep(time.Millisecond)
	}
	if st := r.Stats().Pyramids; st.Failed != 0 || s.late.Load() != 0 {
		t.Errorf("%+v, %d reads of a slide that nobody held", st, s.late.Load())
	}
	for s.refs.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
}
