//go:build unix

package source

import (
	"os"
	"syscall"
)

// nonblock keeps the open of a pipe that nobody writes to from waiting.
const nonblock = syscall.O_NONBLOCK

// place is where a file lies: its device and inode.
func place(fi os.FileInfo) (device, inode uint64) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino)
	}
	return 0, 0
}
