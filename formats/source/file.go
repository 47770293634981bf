// Package source gives slides their bytes: here, from files.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/microtome/microtome"
)

// File is a regular file, read by pread: a file truncated under a memory map
// would end the process. All methods may be called at once.
type File struct {
	file       *os.File
	size       int64
	generation microtome.Generation
}

// OpenFile opens the regular file at path. It fails with ErrNotFound when there
// is none, Unsupported for anything that is no regular file (without blocking,
// even on a pipe), else ErrSource.
func OpenFile(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, openError(err)
	}
	return newFile(f)
}

// OpenAt opens name below root, following symbolic links only as far as they
// stay below it; a name or link that leads out is ErrNotFound. Otherwise it is
// OpenFile.
func OpenAt(root *os.Root, name string) (*File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, openError(err)
	}
	return newFile(f)
}

func newFile(f *os.File) (*File, error) {
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %w", microtome.ErrSource, err)
	}
	if !fi.Mode().IsRegular() {
		f.Close()
		return nil, &microtome.Unsupported{Tag: "file type", Value: kind(fi.Mode())}
	}
	return &File{file: f, size: fi.Size(), generation: Stat(fi)}, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return m.Type().String()
}

// openError tells a name that leads nowhere from a file that can't be had. What
// os.Root itself refuses (a path that escapes) carries no errno.
func openError(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return fmt.Errorf("%w: %w", microtome.ErrNotFound, err)
	}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL:
		return fmt.Errorf("%w: %w", microtome.ErrNotFound, err)
	case syscall.ENXIO: // a socket, which open refuses
		return &microtome.Unsupported{Tag: "file type", Value: "socket"}
	}
	return fmt.Errorf("%w: %w", microtome.ErrSource, err)
}

// ReadAt implements microtome.Source. A file that has shrunk since it was
// opened fails with ErrSource.
func (f *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.file.ReadAt(p, off)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) && off+int64(n) >= f.size:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		return n, fmt.Errorf("the file has shrunk to %d bytes: %w", off+int64(n), microtome.ErrSource)
	}
	return n, fmt.Errorf("%w: %w", microtome.ErrSource, err)
}

// Size implements microtome.Source.
func (f *File) Size() int64 { return f.size }

// Generation implements microtome.Source: that of the opened file, whatever has
// taken its name since.
func (f *File) Generation() microtome.Generation { return f.generation }

// Close implements microtome.Source.
func (f *File) Close() error { return f.file.Close() }

// Stat is the generation of the file that fi describes: a hash of its device,
// inode, size and modification time in nanoseconds.
func Stat(fi os.FileInfo) microtome.Generation {
	device, inode := place(fi)
	var b [32]byte
	for i, v := range []uint64{device, inode, uint64(fi.Size()), uint64(fi.ModTime().UnixNano())} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	sum := sha256.Sum256(b[:])
	return microtome.Generation{
		ID:      base64.RawURLEncoding.EncodeToString(sum[:12]),
		Size:    fi.Size(),
		ModTime: fi.ModTime(),
	}
}
