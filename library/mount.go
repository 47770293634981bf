package library

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/microtome/microtome"
)

// mount is where ids lead into: a root, or a link that its root names.
type mount struct {
	prefix string // of the ids: "", "name" or "name/link"
	path   string // absolute, as it was named
	as     string // the name that a served file goes by; "" for a folder

	at     atomic.Pointer[anchor]
	looked atomic.Int64 // when path was last followed, by Library.now
	mu     sync.Mutex
	old    *anchor // the one before: calls under way may still use it
}

// anchor is what a mount's path led to when it was last followed. Everything
// below is reached through dir, so that no name and no symlink can lead out.
type anchor struct {
	dir  *os.Root
	file string // the one file served, when the root is a file
	real string // that file's path without symlinks
}

// mounts are ordered so that the longest prefix stands first.
type mounts []*mount

// place is where an id leads: a file below a mount.
type place struct {
	mount *mount
	name  string // below the mount's folder; "" is the served file itself
}

// anchored returns the folder to look in, and the name there.
func (p place) anchored() (*os.Root, string) {
	a := p.mount.at.Load()
	if p.name == "" {
		return a.dir, a.file
	}
	return a.dir, p.name
}

func (p place) stat() (fs.FileInfo, error) {
	dir, name := p.anchored()
	fi, err := dir.Stat(name)
	if err != nil {
		return nil, placeError(err)
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", microtome.ErrNotFound)
	}
	return fi, nil
}

// find maps an id to the file it names. Whatever cannot be one of our slides
// is ErrNotFound, whether it exists or not.
func (ms mounts) find(id string) (place, error) {
	if !validPath(id) {
		return place{}, microtome.ErrNotFound
	}
	for _, m := range ms {
		rest, ok := m.below(id)
		switch {
		case !ok:
		case m.as != "":
			if rest == m.as {
				return place{mount: m}, nil
			}
		case isSlideName(path.Base(rest)):
			return place{m, rest}, nil
		}
	}
	return place{}, microtome.ErrNotFound
}

// below cuts the mount's prefix from an id.
func (m *mount) below(id string) (string, bool) {
	if m.prefix == "" {
		return id, true
	}
	return strings.CutPrefix(id, m.prefix+"/")
}

func (ms mounts) close() error {
	var errs []error
	for _, m := range ms {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

// placeError sorts what the file system says. A path that os.Root refuses
// because it leads out of its folder, and one that cannot exist, is not found;
// one that we may not read is forbidden; the rest are failures of the disk.
func placeError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the server may not read this file", microtome.ErrForbidden)
	}
	var no syscall.Errno
	if !errors.As(err, &no) {
		return microtome.ErrNotFound
	}
	switch no {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EXDEV:
		return microtome.ErrNotFound
	}
	return fmt.Errorf("%w: %w", microtome.ErrSource, no)
}

func openMounts(roots []Root) (mounts, error) {
	var ms mounts
	for _, r := range roots {
		more, err := openRoot(r, len(roots) == 1)
		ms = append(ms, more...)
		if err == nil {
			err = clash(ms)
		}
		if err != nil {
			return nil, errors.Join(err, ms.close())
		}
	}
	slices.SortStableFunc(ms, func(a, b *mount) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return ms, nil
}

// clash reports two mounts that would give out the same ids.
func clash(ms mounts) error {
	seen := map[string]bool{}
	for _, m := range ms {
		key := m.prefix
		if m.as != "" {
			key = join(m.prefix, m.as)
		}
		if seen[key] {
			return fmt.Errorf("%w: two served paths are called %q: give one another name (NAME=PATH)", microtome.ErrMalformed, key)
		}
		seen[key] = true
	}
	return nil
}

func openRoot(r Root, alone bool) (mounts, error) {
	if r.Name != "" && (!validPath(r.Name) || strings.Contains(r.Name, "/")) {
		return nil, fmt.Errorf("%w: %q cannot name a root: no slash, no leading dot", microtome.ErrMalformed, r.Name)
	}
	full, err := filepath.Abs(r.Path)
	if err != nil {
		return nil, err
	}
	fi, err := os.Stat(full)
	if err != nil {
		return nil, fmt.Errorf("served path: %w", err)
	}
	top := &mount{prefix: r.Name, path: full}
	switch {
	case !fi.IsDir() && len(r.Links) > 0:
		return nil, fmt.Errorf("%w: %s is a file: it has no links", microtome.ErrMalformed, r.Path)
	case !fi.IsDir():
		top.as = filepath.Base(full)
	case r.Name == "" && !alone:
		top.prefix = filepath.Base(full)
	}
	if err := top.open(); err != nil {
		return nil, fmt.Errorf("served path: %w", err)
	}
	ms := mounts{top}
	for _, link := range r.Links {
		if !validPath(link) {
			return ms, fmt.Errorf("%w: link %q is not a path below %s", microtome.ErrMalformed, link, r.Path)
		}
		m := &mount{prefix: join(top.prefix, link), path: filepath.Join(full, filepath.FromSlash(link))}
		if err := m.open(); err != nil {
			return ms, fmt.Errorf("link %q of %s: %w", link, r.Path, err)
		}
		ms = append(ms, m)
	}
	return ms, nil
}
