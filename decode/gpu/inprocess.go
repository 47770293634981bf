//go:build cgo && linux

package gpu

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome/decode/gpu/native"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// local executes messages in this process: a crash of a vendor's library ends
// it. For tests, and to measure what the child costs.
type local struct {
	d      *native.Device
	lanes  []sync.Mutex
	closed atomic.Bool
	once   sync.Once
}

func inProcess(o *Options, ring []byte) (transport, native.Info, error) {
	info, err := deviceOf(o)
	if err != nil {
		return nil, info, err
	}
	d, err := native.Open(nativeOptions(o, &info, ring))
	if err != nil {
		return nil, info, err
	}
	return &local{d: d, lanes: make([]sync.Mutex, o.Lanes+copyLanes)}, info, nil
}

// deviceOf describes the device that the options name, and refuses one that has
// no decoder.
func deviceOf(o *Options) (native.Info, error) {
	n, err := native.Start(o.Vendor, o.Libraries)
	if err != nil {
		return native.Info{}, err
	}
	if o.Index < 0 || o.Index >= n {
		return native.Info{}, &wire.Failure{Kind: wire.None, Text: fmt.Sprintf("there is no device %d: the driver has %d", o.Index, n)}
	}
	info, err := native.Describe(o.Vendor, o.Index)
	if err != nil {
		return info, err
	}
	if info.Engines == 0 {
		return info, fmt.Errorf("%s (%s) has no JPEG engine, or %s does not tell: it would not be exact", info.Name, info.Arch, info.Decoder)
	}
	return info, nil
}

func nativeOptions(o *Options, info *native.Info, ring []byte) native.Options {
	return native.Options{
		Vendor: o.Vendor, Libraries: o.Libraries, Arch: info.Arch, Index: o.Index,
		Lanes: o.Lanes, CopyLanes: copyLanes, Batch: o.Batch, Arena: o.Arena, Ring: ring, Blocking: o.Blocking, Profile: o.Profile,
	}
}

func (l *local) do(lane int, at int64) (int, error) {
	l.lanes[lane].Lock()
	defer l.lanes[lane].Unlock()
	if l.closed.Load() {
		return 0, errClosed
	}
	rc := l.d.Run(lane, uint64(at))
	return rc, fatal(rc)
}

// close gives the device back when no lane is at work: before the ring is unmapped,
// which the driver holds pinned.
func (l *local) close() {
	l.once.Do(func() {
		l.closed.Store(true)
		for i := range l.lanes {
			l.lanes[i].Lock()
			defer l.lanes[i].Unlock()
		}
		l.d.Close()
	})
}

// fatal is the error of results after which nothing on the device can be trusted.
func fatal(rc int) error {
	switch rc {
	case wire.OK, wire.Memory, wire.Refused:
		return nil
	case wire.Invalid:
		return fmt.Errorf("the worker refused a message as malformed")
	}
	return fmt.Errorf("the device failed: result %d", rc)
}
