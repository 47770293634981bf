//go:build cgo && linux

package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/microtome/microtome/decode/gpu/native"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// told is a line of a worker that describes: the step that it has done, or that
// failed, and what came of it.
type told struct {
	Step      Step
	Libraries []wire.Library `json:",omitempty"`
	Device    *wire.Info     `json:",omitempty"`
	Failed    *wire.Failure  `json:",omitempty"`
	Loaded    []string       `json:",omitempty"`
}

// stepDone ends what a worker tells.
const stepDone Step = "done"

// tell describes a vendor's libraries and devices, one line a step: what comes
// before a crash is known.
func tell(o *order, out *json.Encoder) error {
	libs, err := native.Libraries(o.Vendor, o.Libraries)
	if err := out.Encode(told{Step: StepLibraries, Libraries: libs, Failed: failure(err)}); err != nil {
		return err
	}
	n, err := native.Start(o.Vendor, o.Libraries)
	if err := out.Encode(told{Step: StepDriver, Failed: failure(err)}); err != nil {
		return err
	}
	for i := range n {
		info, err := native.Describe(o.Vendor, i)
		if err := out.Encode(told{Step: StepDevice, Device: &info, Failed: failure(err)}); err != nil {
			return err
		}
	}
	return out.Encode(told{Step: stepDone, Loaded: loaded()})
}

// loaded lists the shared objects of this process, in order: what the vendor's
// libraries need is among them. The C library is not.
func loaded() (files []string) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		_, file, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "/")
		base := path.Base(file)
		if !ok || !strings.Contains(base, ".so") || slices.Contains(files, "/"+file) {
			continue
		}
		switch name, _, _ := strings.Cut(base, "."); name {
		case "ld-linux-x86-64", "ld-linux-aarch64", "libc", "libm", "libdl", "libpthread", "librt", "libresolv":
		default:
			files = append(files, "/"+file)
		}
	}
	slices.Sort(files)
	return files
}

// failure is an error as it goes to the server.
func failure(err error) *wire.Failure {
	var f *wire.Failure
	if err != nil && !errors.As(err, &f) {
		f = &wire.Failure{Text: err.Error()}
	}
	return f
}

// killWait is how long a child that was killed may take to end: one that hangs in
// the driver never does.
const killWait = time.Second

// Look asks a vendor's libraries what this host has, by a child, which may crash
// in them. It returns soon after ctx ends, whatever they do. libraries is their
// folder, "" for the system's.
func Look(ctx context.Context, worker, env []string, vendor, libraries string) Survey {
	cmd := exec.Command(worker[0], worker[1:]...)
	cmd.Env = append(os.Environ(), env...)
	in, err := json.Marshal(order{Vendor: vendor, Libraries: libraries, Probe: true})
	if err != nil {
		return Survey{Trouble: &Trouble{Step: StepLibraries, Err: err}}
	}
	cmd.Stdin = strings.NewReader(string(in))
	said := lastWords{}
	cmd.Stderr, cmd.WaitDelay = &said, killWait
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return Survey{Trouble: &Trouble{Step: StepLibraries, Err: fmt.Errorf("the worker can't be started: %w", err)}}
	}
	stop := context.AfterFunc(ctx, func() {
		_ = cmd.Process.Kill()
		_ = out.Close()
	})
	defer stop()
	var s Survey
	at := StepLibraries
	for lines := json.NewDecoder(out); ; {
		var line told
		if lines.Decode(&line) != nil {
			break
		}
		if line.Step == stepDone {
			_ = cmd.Process.Kill() // libraries may hang when they are left, too
			go func() { _ = cmd.Wait() }()
			s.Loaded = line.Loaded
			return s
		}
		at = s.add(&line, at)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(killWait):
		}
	}
	switch {
	case s.Trouble != nil:
	case ctx.Err() != nil:
		s.Trouble = &Trouble{Step: at, Silent: true, Err: errSilent}
	case err != nil:
		s.Trouble = &Trouble{Step: at, Died: true, Err: fmt.Errorf("%w: %w%s", errDied, err, said.signal())}
	default:
		s.Trouble = &Trouble{Step: at, Died: true, Err: errDied}
	}
	return s
}

// lastWords is the beginning of what a child writes to standard error.
type lastWords struct{ text []byte }

func (l *lastWords) Write(b []byte) (int, error) {
	l.text = append(l.text, b[:min(len(b), 4096-len(l.text))]...)
	return len(b), nil
}

// signal is the signal that Go's runtime tells of when C code crashes: it is not
// how the process ends.
func (l *lastWords) signal() string {
	for line := range strings.Lines(string(l.text)) {
		if strings.HasPrefix(line, "SIG") {
			return ", " + strings.TrimSpace(line)
		}
	}
	return ""
}

// add takes a line of the worker, and returns the step that it is at now.
func (s *Survey) add(line *told, at Step) Step {
	var t *Trouble
	if f := line.Failed; f != nil {
		t = &Trouble{Step: line.Step, Kind: f.Kind, Code: f.Code, Err: f}
	}
	switch line.Step {
	case StepLibraries:
		s.Libraries, at = line.Libraries, StepDriver
	case StepDriver:
		at = StepDevice
		if t != nil && t.Kind == wire.Missing {
			t.Step = StepLibraries
		}
	case StepDevice:
		if line.Device != nil {
			s.Devices = append(s.Devices, Found{Info: *line.Device, Trouble: t})
		}
		return at
	}
	if s.Trouble == nil {
		s.Trouble = t
	}
	return at
}

// Probe lists a vendor's devices.
func Probe(ctx context.Context, worker, env []string, vendor, libraries string) ([]Info, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := Look(ctx, worker, env, vendor, libraries)
	if s.Trouble != nil {
		return nil, s.Trouble
	}
	var out []Info
	for i := range s.Devices {
		out = append(out, s.Devices[i].Info)
	}
	return out, nil
}

// Examine opens an engine, which holds it against the CPU, and closes it. It takes
// o.Start at most, o.Timeout where the device stops to answer, and then o.Start
// again: a worker that is being started is waited for.
func Examine(o Options) Examined {
	x := Examined{Limits: limits(nil)}
	files, err := proofTiles.ReadDir("proof")
	x.Tiles = len(files)
	var e *Engine
	if err == nil {
		e, err = Open(o)
	}
	if err == nil {
		x.Limits = limits(e.exact)
		err = e.Close()
	}
	if err == nil {
		return x
	}
	t := &Trouble{Step: StepOpen, Died: errors.Is(err, errDied), Silent: errors.Is(err, errSilent), Err: err}
	var proof *proofError
	var said *wire.Failure
	if errors.As(err, &proof) {
		t.Step = StepProof
	}
	if errors.As(err, &said) {
		t.Kind, t.Code = said.Kind, said.Code
	}
	x.Trouble = t
	return x
}

// OfHost says what the ring finds on this host.
func OfHost() Host {
	h := Host{Known: true, Locked: -1, Memory: -1}
	fd, err := unix.MemfdCreate("microtome-ring", unix.MFD_CLOEXEC)
	if err == nil {
		err = errors.Join(unix.Ftruncate(fd, defaultRing), unix.Close(fd))
	}
	h.Memfd = err
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim) == nil && lim.Cur != unix.RLIM_INFINITY {
		h.Locked = int64(min(lim.Cur, 1<<53))
	}
	// Of a container, whose own group is the root; version 2, and 1.
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Version 1 has a number beyond all memory for none.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < 1<<53 {
			h.Memory = n
		}
		break
	}
	return h
}
