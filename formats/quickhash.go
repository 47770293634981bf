package formats

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// maxHashed is the most tile bytes that OpenSlide hashes; above it a slide has
// no quickhash.
const maxHashed = 5 << 20

// quickhash is OpenSlide's quickhash-1 of a TIFF: SHA-256 over the stored bytes
// of the smallest level's tiles in order, then the name and value of each text
// property, NUL after each, "" where the property is absent. It is "" where
// OpenSlide has none (too many bytes) or refuses the file (tiles that reach
// beyond its end).
func (r *report) quickhash(ctx context.Context, src microtome.Source, properties map[string]string) (string, error) {
	lowest := r.levels[len(r.levels)-1]
	tiles, err := tileRuns(ctx, lowest)
	if err != nil || tiles == nil {
		return "", err
	}
	h := sha256.New()
	for _, t := range tiles {
		if err := hashRange(ctx, h, src, t.off, t.n); err != nil {
			return "", notCorrupt(err)
		}
	}
	for _, t := range textTags() {
		io.WriteString(h, t.key+"\x00"+properties[t.key]+"\x00")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

type byteRun struct{ off, n int64 }

// tileRuns lists where a directory's tiles lie, nil when they hold more than
// maxHashed bytes or their table is broken.
func tileRuns(ctx context.Context, d *tiff.Dir) ([]byteRun, error) {
	runs, total := []byteRun{}, int64(0)
	for i := range int64(d.Count(tiff.TileByteCounts)) {
		off, n, err := d.TileRef(ctx, i)
		if err != nil {
			return nil, notCorrupt(err)
		}
		if total += n; total > maxHashed {
			return nil, nil
		}
		if n > 0 {
			runs = append(runs, byteRun{off, n})
		}
	}
	return runs, nil
}

// notCorrupt lets a broken file pass as one without a hash: only failures that
// may heal (the source, a cancelled caller) are told.
func notCorrupt(err error) error {
	if errors.Is(err, microtome.ErrCorrupt) || errors.Is(err, microtome.ErrLimit) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// hashRange feeds n bytes of src to h, in pieces.
func hashRange(ctx context.Context, h hash.Hash, src microtome.Source, off, n int64) error {
	if off < 0 || n < 0 || off > src.Size()-n {
		return fmt.Errorf("tile at %d, %d bytes long: beyond the file's end: %w", off, n, microtome.ErrCorrupt)
	}
	buf := make([]byte, min(n, 1<<16))
	for n > 0 {
		p := buf[:min(n, int64(len(buf)))]
		if _, err := src.ReadAt(ctx, p, off); err != nil {
			return err
		}
		h.Write(p)
		off += int64(len(p))
		n -= int64(len(p))
	}
	return nil
}

// maxSampled bounds the tiles of the content hash, and the bytes of each.
const (
	maxSampledTiles = 64
	maxSampledBytes = 64 << 10
)

// sampledHash names the content of a slide that has no quickhash: SHA-256 over
// each level's geometry, the text tags, and the first bytes of tiles spread
// evenly over the lowest level and level 0. It is the same wherever the file
// lies.
func sampledHash(ctx context.Context, src microtome.Source, levels [][]picture) (string, error) {
	h := sha256.New()
	for _, level := range levels {
		for _, p := range level {
			if p.dir == nil {
				continue
			}
			w, ht := sizeOf(p.dir)
			fmt.Fprintf(h, "%d %d %d %d\n", w, ht, subfile(p.dir), cellCount(p.dir))
		}
	}
	main := levels[0][0].dir
	for _, t := range textTags() {
		text, _ := textValue(main, t.tag)
		fmt.Fprintf(h, "%s %q\n", t.key, text)
	}
	for _, d := range []*tiff.Dir{main, levels[len(levels)-1][0].dir} {
		if err := sampleTiles(ctx, h, src, d); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sampleTiles hashes the place and first bytes of at most maxSampledTiles
// tiles. A tile that can't be read counts as such.
func sampleTiles(ctx context.Context, h hash.Hash, src microtome.Source, d *tiff.Dir) error {
	count := cellCount(d)
	step := max(1, (count+maxSampledTiles-1)/maxSampledTiles)
	for i := int64(0); i < count; i += step {
		off, n, err := d.TileRef(ctx, i)
		if err == nil {
			fmt.Fprintf(h, "tile %d %d\n", i, n)
			err = hashRange(ctx, h, src, off, min(n, maxSampledBytes))
		}
		if err != nil {
			if notCorrupt(err) != nil {
				return err
			}
			fmt.Fprintf(h, "unreadable\n")
		}
	}
	return nil
}
