//go:build race

package qualify

// underRace leaves out what takes minutes with the race detector.
const underRace = true
