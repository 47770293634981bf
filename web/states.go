package web

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"net/http"
	"strings"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/microtome/microtome"
)

// maxStates bounds how many slides' tags are remembered, about 200 bytes each.
const maxStates = 4096

// slideStates remembers what web derives from a slide once.
type slideStates struct {
	encoder string
	known   *lru.Cache[stateKey, *slideState]
}

type stateKey struct{ id, generation string }

// slideState is one state of one slide's file.
type slideState struct {
	tag atomic.Pointer[string] // the slide's part of every ETag, once known
}

func newSlideStates(encoder string) (*slideStates, error) {
	known, err := lru.New[stateKey, *slideState](maxStates)
	return &slideStates{encoder: encoder, known: known}, err
}

// tag is the slide's part of every ETag: a hash of its content id, size, time
// and the encoder version, so that replicas that hold copies of the file agree.
// The content id is read once for a state of the file, by the first request.
func (c *slideStates) tag(ctx context.Context, id string, s microtome.Slide) (string, error) {
	gen := s.Info().Generation
	key := stateKey{id, gen.ID}
	st, ok := c.known.Get(key)
	if !ok {
		st = &slideState{}
		if prev, found, _ := c.known.PeekOrAdd(key, st); found {
			st = prev
		}
	}
	if tag := st.tag.Load(); tag != nil {
		return *tag, nil
	}
	// Of many at once the slide has one read and the others wait, each as long
	// as it likes.
	content, err := s.ContentID(ctx)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, microtome.ErrSource) || errors.Is(err, microtome.ErrBusy) {
			return "", err // may go better next time
		}
		// Nothing names the content: this copy's own state has to do.
		content = "generation " + gen.ID
	}
	tag := stateTag(content, gen, c.encoder)
	st.tag.Store(&tag)
	return tag, nil
}

func stateTag(content string, gen microtome.Generation, encoder string) string {
	h := sha256.New()
	var n [16]byte
	binary.LittleEndian.PutUint64(n[:8], uint64(gen.Size))
	binary.LittleEndian.PutUint64(n[8:], uint64(gen.ModTime.UnixNano()))
	h.Write(n[:])
	h.Write([]byte(encoder))
	h.Write([]byte{0})
	h.Write([]byte(content))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// entityTag joins a slide's tag with the canonical form of what is asked of it.
func entityTag(slideTag string, canonical []byte) string {
	h := fnv.New64a()
	h.Write(canonical)
	var b [40]byte
	out := append(b[:0], '"')
	out = append(out, slideTag...)
	out = append(out, '-')
	out = hex.AppendEncode(out, h.Sum(nil))
	return string(append(out, '"'))
}

// matches is If-None-Match by weak comparison (RFC 9110 §13.1.2). "*" never
// matches here: whether anything stands at the address is not yet known.
func matches(r *http.Request, etag string) bool {
	for _, line := range r.Header["If-None-Match"] {
		if line == etag {
			return true
		}
		for item := range strings.SplitSeq(line, ",") {
			if strings.TrimPrefix(strings.TrimSpace(item), "W/") == etag {
				return true
			}
		}
	}
	return false
}
