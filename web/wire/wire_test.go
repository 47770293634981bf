package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// recorder is a connection that keeps its writes apart.
type recorder struct {
	net.Conn
	mu     sync.Mutex
	writes [][]byte
	fail   error
	closed bool
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return 0, r.fail
	}
	r.writes = append(r.writes, bytes.Clone(p))
	return len(p), nil
}
func (r *recorder) SetReadDeadline(time.Time) error  { return nil }
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }
func (r *recorder) SetDeadline(time.Time) error      { return nil }
func (r *recorder) Close() error                     { r.closed = true; return nil }

func (r *recorder) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Join(r.writes, nil)
}

// Whatever is written, however, arrives whole and in order.
func TestOrderIsKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		r := &recorder{}
		c := &conn{Conn: r}
		var want []byte
		for i := range 20 {
			p := bytes.Repeat([]byte{byte(i + 1)}, [...]int{1, full - 1, full, full, full + 1, 3 * full}[rng.IntN(6)])
			if n, err := c.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			want = append(want, p...)
			clear(p) // the writer's buffer is its own again
			switch rng.IntN(6) {
			case 0:
				_ = c.SetReadDeadline(time.Time{})
			case 1:
				_ = c.SetDeadline(time.Time{})
			}
		}
		if err := c.Close(); err != nil || !r.closed {
			t.Fatal(err)
		}
		if !bytes.Equal(r.bytes(), want) {
			t.Fatal("bytes differ")
		}
	}
}

func TestHoldsOnlyFullWrites(t *testing.T) {
	for _, n := range []int{1, full - 1, full + 1, 2 * full} {
		r := &recorder{}
		c := &conn{Conn: r}
		_, _ = c.Write(make([]byte, n))
		if len(r.bytes()) != n {
			t.Errorf("a write of %d waits", n)
		}
	}
}

// A full write without a sequel leaves by itself.
func TestPatienceEnds(t *testing.T) {
	r := &recorder{}
	c := &conn{Conn: r}
	for round := 1; round <= 3; round++ {
		_, _ = c.Write(make([]byte, full))
		for began := time.Now(); len(r.bytes()) != round*full; time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal("still held")
			}
		}
	}
}

func TestFailureOfHeldWriteIsTold(t *testing.T) {
	broken := errors.New("broken pipe")
	r := &recorder{fail: broken}
	c := &conn{Conn: r}
	if _, err := c.Write(make([]byte, full)); err != nil {
		t.Fatal("a held write failed at once")
	}
	_ = c.SetReadDeadline(time.Time{})
	if _, err := c.Write([]byte("x")); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	c = &conn{Conn: r}
	_, _ = c.Write(make([]byte, full))
	if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, broken) {
		t.Errorf("joined write: %d, %v", n, err)
	}
}

// Answers of every size around the buffer's come through a real server, kept
// alive and closed.
func TestServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{IdleTimeout: time.Minute, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.URL.Query().Get("n"), &n)
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = w.Write(bytes.Repeat([]byte{'a'}, n))
	})}
	go func() { _ = srv.Serve(Join(l)) }()
	defer srv.Close()
	for _, alive := range []bool{true, false} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: !alive}, Timeout: 20 * time.Second}
		for n := 3800; n < 4200; n += 3 {
			checkAnswer(t, client, l.Addr(), n)
		}
		for _, n := range []int{0, 1, 8192, 10800, 1 << 20} {
			checkAnswer(t, client, l.Addr(), n)
		}
	}
}

func checkAnswer(t *testing.T, client *http.Client, addr net.Addr, n int) {
	t.Helper()
	resp, err := client.Get(fmt.Sprintf("http://%s/?n=%d", addr, n))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || len(body) != n {
		t.Fatalf("%d of %d bytes, %v", len(body), n, err)
	}
}
