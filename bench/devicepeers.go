package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
)

// devicePeers are who a device is held against: the reference, and the other
// reader that decodes on a GPU.
var devicePeers = []string{"openslide", "cucim-gpu"}

// peers measures the grid by others on the same machine. One that is not installed,
// or fails, is a row that says so.
func (r *deviceRun) peers(ctx context.Context) error {
	if r.o.Python == "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "microtome-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "peers.py")
	if err := os.WriteFile(program, peersProgram, 0o600); err != nil {
		return err
	}
	for _, key := range devicePeers {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.say("grid, %s", key)
		row := DeviceRow{Task: "grid, cold, one caller", Settings: key, Unit: "patches"}
		if err := r.peer(ctx, program, key, &row); err != nil {
			row.Rates, row.Note = nil, err.Error()
		}
		r.report.Rows = append(r.report.Rows, row)
	}
	return nil
}

func (r *deviceRun) peer(ctx context.Context, program, key string, row *DeviceRow) error {
	where := "-"
	if key == "openslide" {
		where = cpus(1)
	}
	c, err := start(ctx, nil, r.o.Python, program, key, r.o.Path, where)
	if err != nil {
		return err
	}
	defer c.stop()
	row.Settings = key + " " + c.version
	q := Ask{Cold: true, Cache: r.o.Protocol.ColdCache, Callers: 1, Patch: r.o.Protocol.Patch, Sum: true}
	for _, p := range r.grid {
		q.At = append(q.At, At{X: p.Region.L0X, Y: p.Region.L0Y})
	}
	a, err := c.ask(q)
	if err != nil {
		return err
	}
	sums, err := r.cpuSums(ctx)
	if err != nil {
		return err
	}
	row.Note = differing(sums, strings.Fields(strings.Trim(a.Sum, "[]")))
	q.Sum = false
	for range r.o.Protocol.Trials {
		a, err := c.ask(q)
		if err != nil {
			return err
		}
		row.Rates = append(row.Rates, float64(len(q.At))/a.Seconds)
	}
	return nil
}

// cpuSums are the checksums of the grid's patches as the CPU makes them.
func (r *deviceRun) cpuSums(ctx context.Context) (sums []string, err error) {
	rd, err := r.reader(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rd.Close()) }()
	for at := range slices.Chunk(r.grid, batchSize) {
		got, _, err := rd.Patches(ctx, at, tiles.PatchOptions{Channels: 3})
		if err != nil {
			return nil, err
		}
		for i := range got {
			if got[i].Err != nil {
				return nil, got[i].Err
			}
			sums = append(sums, fmt.Sprintf("%08x", sumOf(got[i].Pixels)))
			got[i].Pixels.Release()
		}
	}
	return sums, nil
}

// sumOf is the checksum of host pixels of 3 channels, without their padding.
func sumOf(p microtome.Pixels) uint32 {
	pix, stride, _ := p.Host()
	sum := uint32(0)
	for y := range p.Height() {
		sum = crc32.Update(sum, crc32.IEEETable, pix[y*stride:][:3*p.Width()])
	}
	return sum
}
