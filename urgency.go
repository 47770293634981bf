package microtome

import "sync"

// Urgency is the priority of work that is under way, for those who find that
// they need it sooner. All methods may be called at once.
type Urgency struct {
	mu    sync.Mutex
	now   Priority
	moved func(Priority)
}

// NewUrgency begins with a priority.
func NewUrgency(p Priority) *Urgency { return &Urgency{now: p} }

// Now is the priority.
func (u *Urgency) Now() Priority {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.now
}

// Raise makes the work at least as urgent as p.
func (u *Urgency) Raise(p Priority) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p >= u.now {
		return
	}
	u.now = p
	if u.moved != nil {
		u.moved(p)
	}
}

// Watch has moved called, with the lock held, whenever the priority is raised;
// nil ends that. It returns the priority.
func (u *Urgency) Watch(moved func(Priority)) Priority {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.moved = moved
	return u.now
}
