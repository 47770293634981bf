//go:build cgo && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/microtome/microtome/synth"
)

// deviceServer is `microtome serve --device nvidia`, or amd, as a process of its
// own, over stand-ins for the vendor's libraries.
type deviceServer struct {
	vendor string
	cmd    *exec.Cmd
	log    output
	client *http.Client
}

func startDeviceServer(t *testing.T, vendor string, args ...string) *deviceServer {
	t.Helper()
	dir := t.TempDir()
	for name, spec := range map[string]synth.Spec{"jpeg.svs": {Codec: synth.JPEG}, "zip.tiff": {Format: synth.TIFF, Codec: synth.Deflate}} {
		spec.Width, spec.Height, spec.Levels = 900, 700, 1
		if err := synth.WriteFile(filepath.Join(dir, name), spec, nil); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(dir, "s.sock")
	s := &deviceServer{vendor: vendor, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
	s.cmd = exec.Command("microtome", append([]string{"serve", dir, "--listen", "unix:" + socket, "--device", vendor,
		"--device-libraries", fakeLibraries(t, vendor), "--device-memory", "64MiB"}, args...)...)
	s.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "MICROTOME_QUALIFICATION_DIR="+passesOf(t, vendor))
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	for range 600 {
		if resp, err := s.client.Get("http://localhost/slides/zip.tiff"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("it does not serve:\n%s", s.log.String())
	return nil
}

// post asks for patches.
func (s *deviceServer) post(t *testing.T, body string) (header http.Header, answer []byte) {
	t.Helper()
	return s.postTo(t, "/patches", body)
}

func (s *deviceServer) postTo(t *testing.T, target, body string) (header http.Header, answer []byte) {
	t.Helper()
	resp, err := s.client.Post("http://localhost"+target, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %.300s", resp.Status, err, answer)
	}
	return resp.Header, answer
}

type deviceState struct {
	State           string
	Why             string
	Strikes, Starts int64
}

// state is what the status says of the GPU.
func (s *deviceServer) state(t *testing.T) deviceState {
	t.Helper()
	resp, err := s.client.Get("http://localhost/status.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var st struct{ Devices map[string]deviceState }
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	return st.Devices[s.vendor+":0"]
}

// worker is the process that the server has for the GPU, 0 when there is none.
func (s *deviceServer) worker(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(rest) > 1 && rest[0] != "Z" && rest[1] == strconv.Itoa(s.cmd.Process.Pid) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

const someItems = `"width":64,"height":48,"items":[{"slide":"jpeg.svs","x":10,"y":20},{"slide":"jpeg.svs","x":230,"y":235},{"slide":"jpeg.svs","x":500,"y":300,"downsample":1.7}]`

// A worker that died three times is off, and on again when the operator says so;
// the answers are the same all the time.
func TestServeResetsADevice(t *testing.T) {
	for _, vendor := range fakeVendors() {
		t.Run(vendor, func(t *testing.T) { testServeResetsADevice(t, vendor) })
	}
}

func testServeResetsADevice(t *testing.T, vendor string) {
	s := startDeviceServer(t, vendor)
	batch := func() []byte {
		_, b := s.post(t, `{"statuses":"last",`+someItems+`}`)
		return b[:64+3*64*48*3] // the engine stands in the statuses
	}
	want := batch()
	waits := func(state string) deviceState {
		t.Helper()
		var st deviceState
		for range 500 {
			if !bytes.Equal(batch(), want) {
				t.Fatal("an answer differs")
			}
			if st = s.state(t); st.State == state {
				return st
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("it is %+v, not %s\n%s", st, state, s.log.String())
		return st
	}
	for range 3 {
		if st := waits("ready"); st.State == "ready" {
			pid := s.worker(t)
			if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil { // it is for the server
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for strikes := st.Strikes; s.state(t).Strikes == strikes; {
				if !bytes.Equal(batch(), want) {
					t.Fatal("an answer differs")
				}
			}
		}
	}
	if st := waits("off"); !strings.Contains(st.Why, "died 3 times") || st.Strikes != 3 {
		t.Errorf("off, it says %+v", st)
	}
	if pid := s.worker(t); pid != 0 {
		t.Errorf("off, there is a worker %d", pid)
	}
	if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if st := waits("ready"); st.Starts != 4 || st.Why != "" {
		t.Errorf("on again, it says %+v", st)
	}
	worker := s.worker(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, s.log.String())
	}
	if !strings.Contains(s.log.String(), "device reset") {
		t.Errorf("the log says nothing of it:\n%s", s.log.String())
	}
	for range 200 {
		if syscall.Kill(worker, 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the worker outlived the server")
}

// A decoder that crashes, hangs or fails under way costs nobody an answer, nor the
// GPU its work afterwards.
func TestServeSurvivesItsGPU(t *testing.T) {
	for vendor, decode := range map[string]string{"nvidia": "nvjpegDecodeBatched", "amd": "rocJpegDecodeBatched"} {
		if !slices.Contains(fakeVendors(), vendor) {
			continue
		}
		for _, what := range []string{"crash", "hang", "1"} {
			if what == "hang" && vendor == "nvidia" {
				continue // it takes long, and is one vendor's as another's
			}
			t.Run(vendor+" "+what, func(t *testing.T) {
				t.Setenv("MICROTOME_FAKE", decode+":11:"+what)
				t.Setenv("MICROTOME_FAKE_ONCE", filepath.Join(t.TempDir(), "once"))
				s := startDeviceServer(t, vendor)
				var want []byte
				for i := range 6 {
					start := time.Now()
					_, got := s.post(t, `{"statuses":"last",`+someItems+`}`)
					if d := time.Since(start); d > 5*time.Second {
						t.Errorf("answer %d took %v", i, d)
					}
					if got = got[:64+3*64*48*3]; want == nil {
						want = got
					}
					if !bytes.Equal(got, want) {
						t.Errorf("answer %d differs", i)
					}
					for k := 0; s.state(t).State != "ready" && k < 500; k++ {
						time.Sleep(10 * time.Millisecond)
					}
				}
				if _, err := os.Stat(os.Getenv("MICROTOME_FAKE_ONCE")); err != nil {
					t.Errorf("the fault never came: %v", err)
				}
				if st := s.state(t); st.State != "ready" || (st.Strikes == 0) != (what == "1") {
					t.Errorf("in the end: %+v", st)
				}
			})
		}
	}
}

// Each item of a batch says whether a GPU or the CPU decoded it, in every format
// that has room for it.
func TestPatchesNameTheirEngine(t *testing.T) {
	for _, vendor := range fakeVendors() {
		t.Run(vendor, func(t *testing.T) { testPatchesNameTheirEngine(t, vendor) })
	}
}

func testPatchesNameTheirEngine(t *testing.T, vendor string) {
	s := startDeviceServer(t, vendor)
	items := strings.TrimSuffix(someItems, "]") + `,{"slide":"zip.tiff","x":300,"y":7},{"slide":"zip.tiff","x":-900,"y":-900},{"slide":"none.svs","x":0,"y":0}]`
	want := []string{"rendered; engine=gpu", "rendered; engine=gpu", "rendered; engine=gpu", "rendered; engine=cpu", "empty; engine=none", ""}
	for k, cache := range []string{"miss", "hit"} {
		header, body := s.post(t, `{"format":"png",`+items+`}`)
		var got []string
		for _, p := range partsOf(t, header, body) {
			got = append(got, p.header.Get("Microtome-Tile"))
		}
		for i, w := range want {
			if w != "" && k == 1 && !strings.HasPrefix(w, "empty") { // in the first some share tiles
				w += "; cache=" + cache
			}
			if i >= len(got) || !strings.HasPrefix(got[i], w) || (got[i] == "") != (w == "") {
				t.Errorf("item %d says %q, want %q", i, got, w)
			}
		}
	}
	_, raw := s.post(t, "{"+items+"}")
	for i, w := range []byte{2, 2, 2, 1, 0, 0} {
		if got := raw[64+8*i+6]; got != w {
			t.Errorf("raw: item %d has engine %d, want %d", i, got, w)
		}
	}
	header, body := s.postTo(t, "/patches?statuses=1", `{"format":"npy",`+items+`}`)
	var told struct{ Statuses []struct{ Engine string } }
	parts := partsOf(t, header, body)
	if err := json.Unmarshal(parts[1].body, &told); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(told.Statuses); got != "[{gpu} {gpu} {gpu} {cpu} {none} {}]" {
		t.Errorf("statuses: %s", got)
	}
	// One item alone is the CPU's.
	header, body = s.post(t, `{"format":"png","width":64,"height":48,"items":[{"slide":"jpeg.svs","x":10,"y":20}]}`)
	if got := partsOf(t, header, body)[0].header.Get("Microtome-Tile"); !strings.HasPrefix(got, "rendered; engine=cpu") {
		t.Errorf("one item: %q", got)
	}
}

type part struct {
	header textproto.MIMEHeader
	body   []byte
}

func partsOf(t *testing.T, header http.Header, body []byte) (out []part) {
	t.Helper()
	_, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	for r := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, part{p.Header, b})
	}
}
