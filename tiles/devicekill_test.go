//go:build cgo && linux

package tiles_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/tiles"
)

// The test binary is the worker of engines that have one.
const workerEnv = "MICROTOME_TEST_GPU_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := gpu.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// held is what a process has of the system, to see what an engine left.
type held struct{ children, rings, files, goroutines int }

func holds(t *testing.T) held {
	t.Helper()
	h := held{children: len(children(t)), goroutines: runtime.NumGoroutine()}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	h.rings = bytes.Count(maps, []byte("/memfd:microtome-ring"))
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	h.files = len(fds)
	return h
}

// children are the processes that this one has started and not yet buried.
func children(t *testing.T) (pids []int) {
	t.Helper()
	self := strconv.Itoa(os.Getpid())
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		// pid (name) state parent …; the name may hold anything.
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && len(rest) > 1 && rest[1] == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// asked is a batch and what the CPU answers.
type asked struct {
	batch []tiles.Patch
	want  [][]byte // nil where it fails
}

func askedOf(t *testing.T, plain *tiles.Reader, batch []tiles.Patch) asked {
	t.Helper()
	a := asked{batch: batch, want: make([][]byte, len(batch))}
	results, _, err := plain.Patches(t.Context(), batch, tiles.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err == nil {
			a.want[i] = rowsOf(r.Pixels)
			r.Pixels.Release()
		}
	}
	return a
}

// ask holds a reader's answer against the CPU's.
func (a *asked) ask(t *testing.T, r *tiles.Reader) {
	results, _, err := r.Patches(t.Context(), a.batch, tiles.PatchOptions{})
	if err != nil {
		t.Errorf("a batch was not answered: %v", err)
		return
	}
	for i, got := range results {
		if (got.Err == nil) != (a.want[i] != nil) {
			t.Errorf("item %d: %v", i, got.Err)
		}
		if got.Err != nil {
			continue
		}
		if !bytes.Equal(rowsOf(got.Pixels), a.want[i]) {
			t.Errorf("item %d (%+v): the pixels differ", i, a.batch[i].Region)
		}
		got.Pixels.Release()
	}
}

// kills kills the worker at n random moments, one in four of them whether it has
// started or not, and asks an engine that is off because of it on again. It returns
// how often it had to.
func kills(t *testing.T, d *gpu.Engine, n int) (off int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 7))
	for last := 0; n > 0; {
		for started := rng.IntN(4) > 0; ; time.Sleep(time.Millisecond) {
			state := d.Stats().State
			if state == "off" {
				off++
				if err := d.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			if !started || state == "ready" {
				break
			}
		}
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
		for _, pid := range children(t) {
			if pid == last {
				continue // its death has not been seen yet
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			last = pid
			n--
		}
	}
	return off
}

// A worker that is killed a hundred times under load costs nobody an answer and
// leaves nothing behind, and the engine works afterwards as it did before.
func TestHundredKills(t *testing.T) { eachVendor(t, testHundredKills) }

func testHundredKills(t *testing.T, vendor string) {
	n := 100
	if testing.Short() || vendor != "nvidia" { // a kill is the server's side of it
		n = 24
	}
	cpu := decode.NewCPU(decode.Options{Queue: 1 << 16})
	defer cpu.Close()
	o := tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: 1 << 20, Background: microtome.RGB{R: 255}}
	plain := newReader(t, o)
	rng := rand.New(rand.NewPCG(1, 100))
	var all []asked
	for i, spec := range []synth.Spec{{Codec: synth.JPEG}, {Codec: synth.JPEGRGB, Sparse: true}, {Format: synth.TIFF, Codec: synth.Deflate}} {
		spec.Width, spec.Height, spec.Levels = 1500, 1200, 2
		s := openedSlide(t, fmt.Sprint("killed ", i), spec)
		for range 10 {
			all = append(all, askedOf(t, plain, randomBatch(s, rng, 6)))
		}
	}
	before := holds(t)
	d := fakeDevice(t, vendor, cpu, func(o *gpu.Options) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		o.Worker, o.Env, o.Arena, o.Ring = []string{self}, []string{workerEnv + "=1"}, 64<<20, 64<<20
	})
	working := holds(t)
	o.Devices = devices(d)
	r := newReader(t, o)
	var askers sync.WaitGroup
	var answered atomic.Int64
	over := make(chan struct{})
	for k := range 4 {
		askers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 3))
			for {
				select {
				case <-over:
					return
				default:
				}
				all[rng.IntN(len(all))].ask(t, r)
				answered.Add(1)
			}
		})
	}
	off := kills(t, d, n)
	back(t, d, n)
	close(over)
	askers.Wait()
	made := d.Stats().Made
	patches := 0
	for i := range all {
		all[i].ask(t, r)
		patches += len(all[i].batch)
	}
	st := d.Stats()
	t.Logf("%d batches were answered while the worker was killed %d times; %d times it was asked on again; %d patches made by it", answered.Load(), n, off, made)
	if answered.Load() < int64(n) || made < int64(n) || off < n/3-1 {
		t.Error("too little to tell")
	}
	if off > n/3 {
		t.Error("it was off before its third death")
	}
	if st.Made-made != int64(patches) || st.Strikes != int64(n) {
		t.Errorf("of %d patches it made %d in the end, after %d strikes", patches, st.Made-made, st.Strikes)
	}
	left(t, working)
	r.Close()
	if st := d.Stats(); st.UsedBytes != 0 || st.Slots != 0 || st.Waiting != 0 {
		t.Errorf("at the end: %+v", st)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	left(t, before)
}

// back waits until the worker has died n times and works again.
func back(t *testing.T, d *gpu.Engine, n int) {
	t.Helper()
	for range 2000 {
		st := d.Stats()
		if st.State == "off" {
			if err := d.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		if st.Strikes >= int64(n) && st.State == "ready" {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("the engine did not come back: %+v", d.Stats())
}

// left waits until the process holds no more than it did.
func left(t *testing.T, before held) {
	t.Helper()
	var now held
	for range 400 {
		if now = holds(t); now.children <= before.children && now.rings <= before.rings && now.files <= before.files && now.goroutines <= before.goroutines {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("left behind: %+v, before %+v\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
}
