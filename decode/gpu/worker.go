//go:build cgo && linux

package gpu

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/microtome/microtome/decode/gpu/native"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// order is what the server asks of a worker, in JSON on its standard input.
type order struct {
	Vendor, Libraries       string
	Index                   int
	Lanes, CopyLanes, Batch int
	Arena, Ring             int64
	Spin                    int
	Blocking, Profile       bool
	Probe                   bool // list the devices, and end
}

// greeting is the worker's answer, a line of JSON on its standard output.
type greeting struct {
	Info   wire.Info
	Failed *wire.Failure `json:",omitempty"`
}

// The child's file descriptors: the ring, and a socket for each lane.
const (
	ringFD  = 3
	laneFDs = 4
)

// Work is the child process: it opens the device that the order names and executes
// messages until the server closes the lanes' sockets.
func Work(in io.Reader, out io.Writer) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("gpu-worker is started by the server: its order can't be read: %w", err)
	}
	if o.Probe {
		return tell(&o, json.NewEncoder(out))
	}
	d, info, err := open(&o)
	hello := greeting{Info: info, Failed: failure(err)}
	if wrong := json.NewEncoder(out).Encode(hello); wrong != nil || err != nil {
		return errors.Join(wrong, err)
	}
	var lanes sync.WaitGroup
	for i := range o.Lanes + o.CopyLanes {
		lanes.Go(func() {
			runtime.LockOSThread()
			d.Serve(i, laneFDs+i, o.Spin)
		})
	}
	lanes.Wait()
	return nil // the process ends, and the driver takes all back
}

func open(o *order) (*native.Device, wire.Info, error) {
	opts := Options{Vendor: o.Vendor, Libraries: o.Libraries, Index: o.Index, Lanes: o.Lanes, Batch: o.Batch, Arena: o.Arena, Blocking: o.Blocking, Profile: o.Profile}
	info, err := deviceOf(&opts)
	if err != nil {
		return nil, info, err
	}
	ring, err := unix.Mmap(ringFD, 0, int(o.Ring), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, info, fmt.Errorf("mmap of the ring: %w", err)
	}
	d, err := native.Open(nativeOptions(&opts, &info, ring))
	return d, info, err
}

// child is the transport to a worker.
type child struct {
	cmd     *exec.Cmd
	lanes   []childLane
	timeout time.Duration
	spin    time.Duration
	once    sync.Once
	using   sync.WaitGroup
	mu      sync.Mutex
	closed  bool
}

// childLane is a lane's socket. Its worker answers messages in the order in which
// they come: whoever sends one waits until those before it have their answers.
type childLane struct {
	fd   int
	mu   sync.Mutex
	last chan struct{} // closed when the message sent last has its answer
}

// How a worker ends that is not asked to.
var (
	errDied   = errors.New("the worker died")
	errSilent = errors.New("the worker did not answer")
)

func startWorker(o *Options, ring int) (transport, wire.Info, error) {
	c := &child{timeout: o.Timeout, spin: time.Duration(o.Spin) * time.Microsecond}
	ours, theirs, err := sockets(o.Lanes + copyLanes)
	if err != nil {
		return nil, wire.Info{}, err
	}
	c.lanes = make([]childLane, len(ours))
	for i, fd := range ours {
		c.lanes[i].fd = fd
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for _, fd := range theirs {
		files = append(files, os.NewFile(uintptr(fd), "lane"))
	}
	dup, err := unix.FcntlInt(uintptr(ring), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		closeAll(ours)
		return nil, wire.Info{}, err
	}
	shared := os.NewFile(uintptr(dup), "ring")
	defer shared.Close()
	c.cmd = exec.Command(o.Worker[0], o.Worker[1:]...)
	c.cmd.Env = append(os.Environ(), o.Env...)
	if !o.Quiet {
		c.cmd.Stderr = os.Stderr
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.ExtraFiles = append([]*os.File{shared}, files...)
	info, err := c.greet(o)
	if err != nil {
		c.close()
		return nil, info, fmt.Errorf("gpu-worker: %w", err)
	}
	return c, info, nil
}

// greet starts the child and waits until it is ready.
func (c *child) greet(o *Options) (wire.Info, error) {
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return wire.Info{}, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return wire.Info{}, err
	}
	// The child dies with the thread that starts it, so that must not end.
	started := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		<-ended
		_ = c.cmd.Wait() // how it ended is seen on the lanes
	}()
	if err := <-started; err != nil {
		return wire.Info{}, err
	}
	err = json.NewEncoder(in).Encode(order{
		Vendor: o.Vendor, Libraries: o.Libraries, Index: o.Index, Lanes: o.Lanes, CopyLanes: copyLanes,
		Batch: o.Batch, Arena: o.Arena, Ring: o.Ring, Spin: o.Spin, Blocking: o.Blocking, Profile: o.Profile,
	})
	hello := greeting{}
	var late atomic.Bool
	watch := time.AfterFunc(o.Start, func() {
		late.Store(true)
		_ = c.cmd.Process.Kill()
	})
	if err == nil {
		var line []byte
		if line, err = bufio.NewReader(out).ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &hello)
		} else {
			err = fmt.Errorf("%w: it ended before it was ready", errDied)
		}
	}
	watch.Stop()
	close(ended)
	if late.Load() {
		err = fmt.Errorf("%w for %v", errSilent, o.Start)
	}
	if err == nil && hello.Failed != nil {
		err = hello.Failed
	}
	return hello.Info, err
}

func sockets(n int) (ours, theirs []int, err error) {
	for range n {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, nil, fmt.Errorf("socketpair: %w", err)
		}
		ours, theirs = append(ours, p[0]), append(theirs, p[1])
	}
	return ours, theirs, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// do implements transport. A worker that does not answer in time is killed.
func (c *child) do(lane int, at int64) (int, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, errClosed
	}
	c.using.Add(1)
	c.mu.Unlock()
	defer c.using.Done()
	l := &c.lanes[lane]
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(at))
	mine := make(chan struct{})
	l.mu.Lock()
	before := l.last
	l.last = mine
	_, err := unix.SendmsgN(l.fd, b[:], nil, nil, unix.MSG_NOSIGNAL)
	l.mu.Unlock()
	defer close(mine)
	if before != nil {
		<-before
	}
	if err != nil {
		return 0, fmt.Errorf("the worker is gone: %w", err)
	}
	n, err := c.receive(l.fd, b[:])
	switch {
	case errors.Is(err, unix.EAGAIN):
		_ = c.cmd.Process.Kill()
		return 0, fmt.Errorf("%w for %v", errSilent, c.timeout)
	case err != nil || n != len(b):
		return 0, errDied
	}
	rc := int(int64(binary.NativeEndian.Uint64(b[:])))
	return rc, fatal(rc)
}

// receive looks for an answer for a moment before it sleeps.
func (c *child) receive(fd int, b []byte) (int, error) {
	for until := time.Now().Add(c.spin); ; {
		n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
		if err == nil || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return n, err
		}
		if time.Now().After(until) {
			break
		}
	}
	wait := unix.NsecToTimeval(int64(c.timeout))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return 0, err
	}
	for {
		n, _, err := unix.Recvfrom(fd, b, 0)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// close kills the worker; the lanes end with it.
func (c *child) close() {
	c.once.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		if c.cmd != nil && c.cmd.Process != nil {
			_ = c.cmd.Process.Kill()
		}
		go func() {
			c.using.Wait()
			for i := range c.lanes {
				_ = unix.Close(c.lanes[i].fd)
			}
		}()
	})
}
