package formats

import (
	"context"
	"errors"
	"image"
	"maps"

	"github.com/microtome/microtome"
)

// lazy holds what is computed at the first call and remembered. busy is held
// by the one that computes; waiters give up with their context. An error is
// not remembered: the next call tries again.
type lazy struct {
	busy       chan struct{}
	properties map[string]string
	contentID  string
}

// lock waits for the right to compute.
func (l *lazy) lock(ctx context.Context) error {
	select {
	case l.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lazy) unlock() { <-l.busy }

// Properties implements microtome.Slide.
func (s *slide) Properties(ctx context.Context) (map[string]string, error) {
	if err := s.lazy.lock(ctx); err != nil {
		return nil, err
	}
	defer s.lazy.unlock()
	p, err := s.propertiesLocked(ctx)
	return maps.Clone(p), err
}

func (s *slide) propertiesLocked(ctx context.Context) (map[string]string, error) {
	if s.lazy.properties != nil {
		return s.lazy.properties, nil
	}
	failures := s.src.failures.Load()
	var box *image.Rectangle
	if !s.reported.aperio {
		var err error
		if box, err = storedBox(ctx, s.reported.levels[0]); err != nil {
			return nil, err
		}
	}
	p := s.reported.properties(box)
	if !s.reported.ours {
		hash, err := s.reported.quickhash(ctx, s.src, p)
		if err != nil {
			return nil, err
		}
		if hash != "" {
			p[quickhashKey] = hash
		}
	}
	if err := s.src.since(failures); err != nil {
		return nil, err
	}
	if sizeOfMap(p) <= maxRemembered {
		s.lazy.properties = p
	}
	return p, nil
}

// maxRemembered is how many bytes of properties a slide keeps: longer ones (an
// OME-XML block of megabytes) are read again when asked for again.
const maxRemembered = 64 << 10

func sizeOfMap(m map[string]string) (n int) {
	for key, value := range m {
		n += len(key) + len(value)
	}
	return n
}

const quickhashKey = "openslide.quickhash-1"

// ContentID implements microtome.Slide.
func (s *slide) ContentID(ctx context.Context) (string, error) {
	if err := s.lazy.lock(ctx); err != nil {
		return "", err
	}
	defer s.lazy.unlock()
	if s.lazy.contentID != "" {
		return s.lazy.contentID, nil
	}
	p, err := s.propertiesLocked(ctx)
	if err != nil {
		return "", err
	}
	id := p[quickhashKey]
	if id == "" {
		failures := s.src.failures.Load()
		id, err = sampledHash(ctx, s.src, s.levels)
		if err = errors.Join(err, s.src.since(failures)); err != nil {
			return "", err
		}
	}
	s.lazy.contentID = id
	return id, nil
}

var _ microtome.Slide = (*slide)(nil)
