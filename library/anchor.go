package library

import (
	"errors"
	"os"
	"path/filepath"
)

// open follows the mount's path for the first time.
func (m *mount) open() error {
	a, err := m.follow()
	if err != nil {
		return err
	}
	m.at.Store(a)
	return nil
}

// follow opens what the path leads to now. For a file that is its folder, so
// that a file put in its place is seen.
func (m *mount) follow() (*anchor, error) {
	if m.as == "" {
		dir, err := os.OpenRoot(m.path)
		return &anchor{dir: dir}, err
	}
	real, err := filepath.EvalSymlinks(m.path)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(filepath.Dir(real))
	return &anchor{dir: dir, file: filepath.Base(real), real: real}, err
}

// refresh follows the path again when that was at least every ago: a folder may
// have been swapped for another, by a rename or by a link that now leads
// elsewhere. While the path leads nowhere the last one stays.
func (m *mount) refresh(now, every int64) {
	last := m.looked.Load()
	if now-last < every || !m.looked.CompareAndSwap(last, now) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unmoved(m.at.Load()) {
		return
	}
	a, err := m.follow()
	if err != nil {
		return
	}
	if m.old != nil {
		m.old.dir.Close()
	}
	m.old = m.at.Swap(a)
}

// unmoved says whether the path still leads to a.
func (m *mount) unmoved(a *anchor) bool {
	path := m.path
	if m.as != "" {
		real, err := filepath.EvalSymlinks(m.path)
		if err != nil || real != a.real {
			return err != nil
		}
		path = filepath.Dir(real)
	}
	there, err := os.Stat(path)
	if err != nil {
		return true
	}
	here, err := a.dir.Stat(".")
	return err == nil && os.SameFile(here, there)
}

func (m *mount) close() error {
	err := m.at.Load().dir.Close()
	if m.old != nil {
		err = errors.Join(err, m.old.dir.Close())
	}
	return err
}
