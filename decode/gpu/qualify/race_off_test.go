//go:build !race

package qualify

const underRace = false
