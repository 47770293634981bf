//go:build cgo && linux

package gpu

import (
	"sync"
	"time"
)

// queue gathers the tiles that wait for the decoder, of all callers. Lanes take
// them in batches: at once when no lane is at work or nobody prepares more, else
// when a batch is full or its oldest tile has waited long enough.
type queue struct {
	batch, long int // long: so many may wait before callers do
	wait        time.Duration

	mu     sync.Mutex
	more   *sync.Cond // tiles came, or the queue was closed
	less   *sync.Cond // tiles were taken
	items  []*loading
	busy   int // batches that lanes have
	coming int // callers that are about to put more
	closed bool
}

func newQueue(o Options) *queue {
	q := &queue{batch: o.Batch, wait: o.Wait, long: 4 * o.Lanes * o.Batch}
	if o.Beside > 0 {
		q.long = o.Beside * o.Lanes * o.Batch
	}
	q.more, q.less = sync.NewCond(&q.mu), sync.NewCond(&q.mu)
	return q
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// begin says that a caller prepares tiles, end that it has put all of them.
func (q *queue) begin() {
	q.mu.Lock()
	q.coming++
	q.mu.Unlock()
}

func (q *queue) end() {
	q.mu.Lock()
	q.coming--
	q.mu.Unlock()
}

// full says that so many wait that a core may as well decode.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) >= q.long
}

// put adds a tile. It waits while the queue is long, which is how callers that
// are faster than the device are held back.
func (q *queue) put(l *loading) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) >= q.long && !q.closed {
		q.less.Wait()
	}
	if q.closed {
		return false
	}
	l.since = time.Now()
	q.items = append(q.items, l)
	if n := len(q.items); n == 1 || n >= q.batch {
		q.more.Signal()
	}
	return true
}

// take fills buf with up to a batch of tiles, or returns none when the queue is
// closed or stop is. The lane is at work until done.
func (q *queue) take(buf []*loading, stop <-chan struct{}) []*loading {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.items) == 0 {
			if q.closed || isClosed(stop) {
				return nil
			}
			q.more.Wait()
		}
		if q.closed || isClosed(stop) {
			return nil
		}
		if len(q.items) >= q.batch || q.busy == 0 || q.coming == 0 || time.Since(q.items[0].since) >= q.wait {
			break
		}
		q.mu.Unlock()
		time.Sleep(q.wait / 16)
		q.mu.Lock()
	}
	n := min(len(q.items), q.batch)
	buf = append(buf[:0], q.items[:n]...)
	rest := copy(q.items, q.items[n:])
	clear(q.items[rest:])
	q.items = q.items[:rest]
	q.busy++
	q.less.Broadcast()
	if rest > 0 {
		q.more.Signal()
	}
	return buf
}

func (q *queue) done() {
	q.mu.Lock()
	q.busy--
	q.mu.Unlock()
}

// drain takes all that wait of a session. Those of the next may wait already.
func (q *queue) drain(s *session) []*loading {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []*loading
	rest := q.items[:0]
	for _, l := range q.items {
		if l.s == s {
			out = append(out, l)
		} else {
			rest = append(rest, l)
		}
	}
	clear(q.items[len(rest):])
	q.items = rest
	q.less.Broadcast()
	return out
}

// wake has lanes look whether they must stop. It takes the lock: a lane that has
// just looked sleeps before, and hears it.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.more.Broadcast()
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.more.Broadcast()
	q.less.Broadcast()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
