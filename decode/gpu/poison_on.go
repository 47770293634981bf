//go:build cgo && linux && gpupoison

package gpu

// poisonFreed overwrites freed slots and reports those that are never freed.
const poisonFreed = true
