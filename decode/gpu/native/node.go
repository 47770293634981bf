//go:build cgo && linux

package native

/*
#include <stdlib.h>
#include "node.h"
*/
import "C"

import "unsafe"

// What C asks of render nodes, for the test: cgo is not allowed in tests.

// nodeOf is mt_node_of.
func nodeOf(sys, pci string) int {
	s, p := C.CString(sys), C.CString(pci)
	defer C.free(unsafe.Pointer(s))
	defer C.free(unsafe.Pointer(p))
	return int(C.mt_node_of(s, p))
}

// newerNode is mt_nodes_newer of what two folders of open files say.
func newerNode(before, after string, ours int) int {
	var n [2][C.MT_NODES]C.int
	for i, dir := range []string{before, after} {
		c := C.CString(dir)
		C.mt_nodes_open(c, &n[i][0])
		C.free(unsafe.Pointer(c))
	}
	return int(C.mt_nodes_newer(&n[0][0], &n[1][0], C.int(ours)))
}
