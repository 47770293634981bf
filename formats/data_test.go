package formats

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/microtome/microtome"
)

// TestRealFiles opens every real file: none may panic, fail without a kind or
// break a promise, and none that opened before may be lost.
func TestRealFiles(t *testing.T) {
	folder := dataFolder(t)
	outcomes := map[string]int{}
	var lines []string
	for _, path := range dataFiles(t) {
		s, err := openPath(t, path)
		outcome := outcomeOf(err)
		if err == nil {
			outcome = s.Info().Format
			exercise(t, path, s)
			s.Close()
		}
		name, outside := filepath.Rel(folder, path)
		if outside == nil && filepath.IsLocal(name) {
			outcomes[outcome]++
		}
		line := outcome + "\t" + name
		if err != nil {
			line += "\t" + err.Error()
		}
		lines = append(lines, line)
	}
	t.Logf("outcomes: %v", outcomes)
	if out := os.Getenv("MICROTOME_OUTCOMES"); out != "" {
		slices.Sort(lines)
		if err := os.WriteFile(out, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	if os.Getenv("MICROTOME_DATA") != "" {
		return // another folder: nothing to pin
	}
	want := map[string]int{"aperio": 2, "generic-tiff": 269, "ome-tiff": 23, "unsupported": 657, "corrupt": 11, "limit": 3}
	if !maps.Equal(outcomes, want) {
		t.Errorf("outcomes are %v, want %v", outcomes, want)
	}
}

func outcomeOf(err error) string {
	for name, kind := range map[string]error{"unsupported": microtome.ErrUnsupported, "corrupt": microtome.ErrCorrupt, "limit": microtome.ErrLimit} {
		if errors.Is(err, kind) {
			return name
		}
	}
	return "other"
}

// exercise reads the corners of every level and plane, and everything else
// once.
func exercise(t *testing.T, path string, s microtome.Slide) {
	t.Helper()
	ctx, info := context.Background(), s.Info()
	for k, level := range info.Levels {
		if k > 0 && level.Width > info.Levels[k-1].Width {
			t.Errorf("%s: level %d is wider than the one before", path, k)
		}
		for plane := range min(info.Planes.C*info.Planes.Z*info.Planes.T, 8) {
			for _, at := range [][2]int{{0, 0}, {level.Cols - 1, level.Rows - 1}} {
				tile, err := s.ReadTile(ctx, k, plane, at[0], at[1])
				if !ofAKind(err) {
					t.Errorf("%s: level %d: tile %v: an error of no kind: %v", path, k, at, err)
				}
				if r := level.TileRect(at[0], at[1]); err == nil && (tile.VisibleWidth != r.Dx() || tile.VisibleHeight != r.Dy()) {
					t.Errorf("%s: level %d: tile %v shows %dx%d, want %v", path, k, at, tile.VisibleWidth, tile.VisibleHeight, r)
				}
			}
		}
	}
	for _, a := range info.Associated {
		if _, err := s.ReadAssociated(ctx, a.Name, 0, 0); !ofAKind(err) {
			t.Errorf("%s: %s: an error of no kind: %v", path, a.Name, err)
		}
	}
	if p, err := s.Properties(ctx); err != nil || p["openslide.level-count"] == "" {
		t.Errorf("%s: properties %v, %v", path, p, err)
	}
	if id, err := s.ContentID(ctx); err != nil || id == "" {
		t.Errorf("%s: content id %q, %v", path, id, err)
	}
	if icc, err := s.ICCProfile(ctx, ""); err != nil || int64(len(icc)) != info.ICCBytes {
		t.Errorf("%s: profile of %d bytes, said %d: %v", path, len(icc), info.ICCBytes, err)
	}
}
