package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
)

// config is everything that `microtome serve` can be told: one key each in a
// config file, MICROTOME_KEY in the environment, --key on the command line.
type config struct {
	Slides []library.Root `koanf:"-"`

	Listen         string   `koanf:"listen"`
	Token          string   `koanf:"token"`
	TokenFile      string   `koanf:"token-file"`
	Insecure       bool     `koanf:"insecure"`
	BasePath       string   `koanf:"base-path"`
	Open           bool     `koanf:"open"`
	Hosts          []string `koanf:"hosts"`
	TrustedProxies []string `koanf:"trusted-proxies"`
	CORS           []string `koanf:"cors"`
	PublicCache    bool     `koanf:"public-cache"`

	ShowAssociated bool `koanf:"show-associated"`
	ShowProperties bool `koanf:"show-properties"`

	Device          string   `koanf:"device"`
	DeviceMemory    byteSize `koanf:"device-memory"`
	DeviceLibraries string   `koanf:"device-libraries"`
	DeviceSample    int      `koanf:"device-sample"`

	QualificationDir string `koanf:"qualification-dir"`

	Workers    int        `koanf:"workers"`
	Queue      int        `koanf:"queue"`
	Quality    int        `koanf:"quality"`
	Background *hexColour `koanf:"background"` // nil: white
	MaxPixels  int64      `koanf:"max-pixels"`

	AnswersMemory byteSize `koanf:"answers-memory"`
	PixelsMemory  byteSize `koanf:"pixels-memory"`
	BatchMemory   byteSize `koanf:"batch-memory"`
	MemoryLimit   byteSize `koanf:"memory-limit"`
	PyramidDir    string   `koanf:"pyramid-dir"`
	PyramidSize   byteSize `koanf:"pyramid-size"`

	MaxOpen     int           `koanf:"max-open"`
	CheckEvery  time.Duration `koanf:"check-every"`
	RescanEvery time.Duration `koanf:"rescan-every"`

	ShutdownDelay   time.Duration `koanf:"shutdown-delay"`
	ShutdownTimeout time.Duration `koanf:"shutdown-timeout"`

	LogLevel    slog.Level    `koanf:"log-level"`
	LogFormat   string        `koanf:"log-format"`
	LogNames    bool          `koanf:"log-names"`
	SlowRequest time.Duration `koanf:"slow-request"`

	loopback bool // Listen can only be reached from this machine
}

// validate checks what the types do not, and says which key is wrong.
func (c *config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(strings.HasPrefix(c.BasePath, "/"), "base-path: %q does not begin with /", c.BasePath)
	check(c.Workers >= 0, "workers: %d is negative", c.Workers)
	check(c.Queue >= 0, "queue: %d is negative", c.Queue)
	check(c.Quality >= 1 && c.Quality <= 100, "quality: %d is not between 1 and 100", c.Quality)
	check(c.DeviceSample >= 0, "device-sample: %d is negative", c.DeviceSample)
	check(c.MaxPixels > 0, "max-pixels: %d is not above 0", c.MaxPixels)
	check(c.MaxOpen > 0, "max-open: %d is not above 0", c.MaxOpen)
	for key, n := range map[string]byteSize{
		"answers-memory": c.AnswersMemory, "pixels-memory": c.PixelsMemory, "batch-memory": c.BatchMemory, "memory-limit": c.MemoryLimit, "pyramid-size": c.PyramidSize,
		"device-memory": c.DeviceMemory,
	} {
		check(n >= 0, "%s: %d is negative", key, n)
	}
	for key, d := range map[string]time.Duration{
		"check-every": c.CheckEvery, "rescan-every": c.RescanEvery, "slow-request": c.SlowRequest,
	} {
		check(d > 0, "%s: %v is not above 0", key, d)
	}
	check(c.ShutdownDelay >= 0, "shutdown-delay: %v is negative", c.ShutdownDelay)
	check(c.ShutdownTimeout >= 0, "shutdown-timeout: %v is negative", c.ShutdownTimeout)
	check(c.LogFormat == "text" || c.LogFormat == "json", "log-format: %q is not text or json", c.LogFormat)
	check(c.Token == "" || !c.Insecure, "token and insecure exclude each other")
	_, err := c.proxies()
	errs = append(errs, err, checkDevice(c.Device))
	return errors.Join(errs...)
}

// proxies are the trusted proxies as networks; a single address is one too.
func (c *config) proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range c.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err == nil {
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			return nil, fmt.Errorf("trusted-proxies: %q is not an address or a network", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// background is the colour of what is not stored.
func (c *config) background() microtome.RGB {
	if c.Background == nil {
		return microtome.RGB{R: 255, G: 255, B: 255}
	}
	return microtome.RGB(*c.Background)
}

// device is where to decode: cpu, auto, or a vendor's devices.
type device struct {
	kind    string // cpu, auto, nvidia, amd
	indexes []int  // of the vendor's devices; empty: the first
}

// parseDevice reads a --device. Whether there is such a device is seen when the
// server starts: a GPU that was asked for is never silently replaced by the CPU.
func parseDevice(text string) (device, error) {
	kind, list, numbered := strings.Cut(text, ":")
	d := device{kind: kind}
	switch kind {
	case "cpu", "auto":
		if numbered {
			return d, fmt.Errorf("device: %q: %s takes no number", text, kind)
		}
		return d, nil
	case "nvidia", "amd":
	default:
		return d, fmt.Errorf("device: %q is not cpu, nvidia, amd or auto", text)
	}
	if !numbered {
		return d, nil
	}
	for _, part := range strings.Split(list, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || slices.Contains(d.indexes, n) {
			return d, fmt.Errorf("device: %q: numbers of devices, such as %s:0,1", text, kind)
		}
		d.indexes = append(d.indexes, n)
	}
	return d, nil
}

func checkDevice(text string) error {
	_, err := parseDevice(text)
	return err
}

// byteSize is a number of bytes, written "64MiB", "64M" (the same), "64MB"
// (10^6) or as a plain number.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	digits := strings.TrimRight(s, "KMGTiBkmgtb ")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit, ok := sizeUnit(strings.TrimSpace(s[len(digits):]))
	if err != nil || !ok || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is not a size such as 64MiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

func sizeUnit(u string) (int64, bool) {
	u = strings.ToLower(u)
	if u == "" || u == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgt", u[0]) + 1
	base := int64(1024)
	switch u[1:] {
	case "", "ib":
	case "b":
		base = 1000
	default:
		return 1, false
	}
	unit := int64(1)
	for range power {
		unit *= base
	}
	return unit, power > 0
}

// hexColour is a colour written #rrggbb.
type hexColour microtome.RGB

func (c *hexColour) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(text), "#"), 16, 32)
	if err != nil || len(text) != 7 || text[0] != '#' {
		return fmt.Errorf("%q is not a colour such as #ffffff", text)
	}
	*c = hexColour{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n)}
	return nil
}
