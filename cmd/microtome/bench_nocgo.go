//go:build !cgo

package main

import "github.com/microtome/microtome/bench"

var bareLoop func([]bench.Stream)
