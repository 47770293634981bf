package route

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/microtome/microtome"
)

// Once refuses a second value of a parameter. The zero value has seen none.
type Once []string

// See notes a parameter; ErrMalformed when it was there before.
func (o *Once) See(key string) error {
	if slices.Contains(*o, key) {
		return fmt.Errorf("%s given twice: %w", strconv.Quote(shorten(key)), microtome.ErrMalformed)
	}
	*o = append(*o, key)
	return nil
}

// EachParam calls f for every parameter of a raw query, in order and decoded,
// and stops at the first error. It allocates only for escaped text.
func EachParam(raw string, f func(key, value string) error) error {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, err := unescape(key, true)
		if err != nil {
			return err
		}
		if value, err = unescape(value, true); err != nil {
			return err
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// Pixels are the parameters that stand wherever pixels are made. The zero value
// asks for nothing in particular.
type Pixels struct {
	C, Z, T     int
	Format      string // "", jpeg, png, webp, raw or npy
	Quality     int    // 0: the server's
	Background  *microtome.RGB
	EmbedICC    bool
	Bounds      bool    // origin=bounds
	Tolerance   float64 // mpp_tolerance; 0: the default
	Version     string
	VersionSeen bool
}

// Set takes one parameter; known is false when it is not one of these.
func (p *Pixels) Set(key, value string) (known bool, err error) {
	switch key {
	case "c":
		p.C, err = Number(key, value)
	case "z":
		p.Z, err = Number(key, value)
	case "t":
		p.T, err = Number(key, value)
	case "image":
		var n int
		if n, err = Number(key, value); err == nil && n != 0 {
			err = fmt.Errorf("image %d: %w", n, microtome.ErrNotFound)
		}
	case "format":
		p.Format, err = parseFormat(value)
	case "quality":
		p.Quality, err = bounded(key, value, 1, 100)
	case "background":
		p.Background, err = parseColor(value)
	case "icc":
		p.EmbedICC, err = choice(key, value, "none", "embed")
	case "origin":
		p.Bounds, err = choice(key, value, "slide", "bounds")
	case "mpp_tolerance":
		p.Tolerance, err = positive(key, value)
		if err == nil && p.Tolerance >= 1 {
			err = fmt.Errorf("mpp_tolerance is not below 1: %w", microtome.ErrMalformed)
		}
	case "v":
		p.Version, p.VersionSeen = value, true
	case "token": // the door's, which has read it already
	default:
		return false, nil
	}
	return true, err
}

// parseFormat checks the name of an answer format; jpg is jpeg.
func parseFormat(s string) (string, error) {
	switch s {
	case "jpg":
		return "jpeg", nil
	case "jpeg", "png", "webp", "raw", "npy":
		return s, nil
	}
	return "", &microtome.Unsupported{Tag: "format", Value: strconv.Quote(shorten(s))}
}

// choice reads a two-valued parameter: true for the second.
func choice(key, value, off, on string) (bool, error) {
	switch value {
	case off:
		return false, nil
	case on:
		return true, nil
	}
	return false, fmt.Errorf("%s is neither %s nor %s: %w", key, off, on, microtome.ErrMalformed)
}

// parseColor reads RRGGBB, with or without the '#'.
func parseColor(s string) (*microtome.RGB, error) {
	hex := strings.TrimPrefix(s, "#")
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) != 6 {
		return nil, fmt.Errorf("background is not RRGGBB: %w", microtome.ErrMalformed)
	}
	return &microtome.RGB{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n)}, nil
}

// bounded reads an integer parameter between lo and hi.
func bounded(key, value string, lo, hi int64) (int, error) {
	n, err := integer(key, value)
	if err == nil && (n < lo || n > hi) {
		err = fmt.Errorf("%s is not in %d to %d: %w", key, lo, hi, microtome.ErrMalformed)
	}
	return int(n), err
}

// integer reads a decimal integer of at most 2^53 in magnitude, which every
// JSON number and JavaScript client can hold.
func integer(key, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || value[0] == '+' || n > 1<<53 || n < -(1<<53) {
		return 0, fmt.Errorf("%s is not an integer: %w", key, microtome.ErrMalformed)
	}
	return n, nil
}

// positive reads a finite decimal number above 0. What else Go's parser takes
// (hexadecimal, a leading plus) no other client writes on purpose.
func positive(key, value string) (float64, error) {
	f, err := strconv.ParseFloat(value, 64)
	if strings.IndexFunc(value, notDecimal) >= 0 || strings.HasPrefix(value, "+") {
		err = strconv.ErrSyntax
	}
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f <= 0 {
		return 0, fmt.Errorf("%s is not a number above 0: %w", key, microtome.ErrMalformed)
	}
	return f, nil
}

func notDecimal(r rune) bool { return !strings.ContainsRune("0123456789.eE+-", r) }

// ErrUnknown refuses a parameter that a route does not take.
func ErrUnknown(key string) error {
	return fmt.Errorf("unknown parameter %s: %w", strconv.Quote(shorten(key)), microtome.ErrMalformed)
}

// Count reads an integer parameter between lo and hi; else ErrMalformed.
func Count(key, value string, lo, hi int) (int, error) {
	return bounded(key, value, int64(lo), int64(hi))
}
