//go:build cgo && linux && !gpupoison

package gpu

// poisonFreed is on in builds with the tag gpupoison, for tests.
const poisonFreed = false
