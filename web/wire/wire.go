// Package wire joins the two writes that net/http makes of an answer into one
// system call.
//
// A server's connection is written through a buffer of 4 KiB. An answer of ten,
// a stored tile, leaves as one write of exactly that (the head and the first
// part of the body) and one of the rest. The two cost a stored tile about a
// fifth of its whole time: more than all work above them.
package wire

import (
	"net"
	"sync"
	"time"
)

// full is the size of net/http's connection buffer: only a write of exactly
// this size can have a sequel.
const full = 4 << 10

// patience is how long a write may wait for its sequel, should neither that nor
// the turn to the next request come.
const patience = 2 * time.Millisecond

// Join returns a listener whose connections hold back a write of exactly 4 KiB
// until the next write, the next request or 2 ms have come. It is for http
// servers that speak plain TCP; nothing is ever lost or reordered for others.
func Join(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection with at most one write held back. It does not embed a
// *net.TCPConn, whose ReadFrom would overtake that write.
type conn struct {
	net.Conn
	mu    sync.Mutex
	buf   []byte // of length full, once needed
	held  bool   // buf is still to be written
	err   error  // of a held write that failed
	timer *time.Timer
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	switch {
	case c.held:
		return c.writeBoth(p)
	case len(p) == full:
		c.hold(p)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *conn) hold(p []byte) {
	if c.timer == nil {
		c.buf = make([]byte, full)
		c.timer = time.AfterFunc(patience, c.late)
	} else {
		c.timer.Reset(patience)
	}
	copy(c.buf, p)
	c.held = true
}

// writeBoth writes what is held and p by one writev. The caller holds mu.
func (c *conn) writeBoth(p []byte) (int, error) {
	c.timer.Stop()
	c.held = false
	both := net.Buffers{c.buf, p}
	n, err := both.WriteTo(c.Conn)
	if err != nil {
		c.err = err
	}
	return max(int(n)-full, 0), err
}

// flush writes what is held. The caller holds mu.
func (c *conn) flush() {
	if !c.held {
		return
	}
	c.timer.Stop()
	c.held = false
	if _, err := c.Conn.Write(c.buf); err != nil {
		c.err = err // the next Write tells
	}
}

// late is the timer's: no sequel came.
func (c *conn) late() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
}

// tryFlush is for the calls that net/http makes between requests. When a write
// is under way, that write takes care of what is held, and must not be waited
// for: closing is how a stuck one is ended.
func (c *conn) tryFlush() {
	if c.mu.TryLock() {
		c.flush()
		c.mu.Unlock()
	}
}

// SetReadDeadline implements net.Conn: net/http calls it before the next request.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.tryFlush()
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.tryFlush()
	return c.Conn.SetDeadline(t)
}

// CloseWrite ends the outgoing half where the connection can: net/http does so
// before it closes with unread bytes.
func (c *conn) CloseWrite() error {
	c.tryFlush()
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn. What is held gets a second to leave.
func (c *conn) Close() error {
	if c.mu.TryLock() {
		if c.held {
			_ = c.Conn.SetWriteDeadline(time.Now().Add(time.Second))
			c.flush()
		}
		c.mu.Unlock()
	}
	return c.Conn.Close()
}
