package tiles

import (
	"context"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

// hold keeps a slide open beyond the use of whoever asks.
func hold(s microtome.Slide) (release func()) {
	if h, ok := s.(microtome.Holder); ok {
		return h.Hold()
	}
	return func() {}
}

// begin is the cache's Begin with a load that holds the slide: it goes on after
// its asker has left when others, who came by other handles, still wait for it.
func begin[K comparable, V any](ctx context.Context, c *cache.Cache[K, V], k K, s microtome.Slide,
	load func(context.Context) (V, error)) cache.Ticket[K, V] {
	release := hold(s)
	t := c.Begin(ctx, k, func(ctx context.Context) (V, error) {
		defer release()
		return load(ctx)
	})
	if !t.Starts() {
		release()
	}
	return t
}
