//go:build !(vips && cgo)

// Package worker is empty in a build without libvips.
package worker
