// Load puts a server under the load of a lab: viewers that pan and zoom beside
// samplers that take batches of patches, or callers that all leave at once.
//
//	go run ./bench/load [flags] BASE-URL SLIDE-ID …
//
// It prints what each kind of caller saw and exits with 1 when a bound that was
// asked for doesn't hold.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

// settings are the flags.
type settings struct {
	base     string
	ids      []string
	token    string
	viewers  int
	samplers int
	batch    int
	think    time.Duration
	duration time.Duration
	mode     string
	callers  int
	leave    int
	p99      time.Duration
	starved  time.Duration
	growth   float64
	seed     uint64
}

func parse() settings {
	var s settings
	flag.StringVar(&s.mode, "mode", "lab", "lab: viewers and samplers; leave: -callers at once, of which -leave leave; same: -callers ask for one tile")
	flag.StringVar(&s.token, "token", os.Getenv("MICROTOME_TOKEN"), "the server's token")
	flag.IntVar(&s.viewers, "viewers", 200, "people who pan and zoom")
	flag.IntVar(&s.samplers, "samplers", 4, "training loops")
	flag.IntVar(&s.batch, "batch", 64, "patches a request")
	flag.DurationVar(&s.think, "think", 3*time.Second, "mean time between a viewer's steps")
	flag.DurationVar(&s.duration, "duration", 10*time.Minute, "how long")
	flag.IntVar(&s.callers, "callers", 500, "of the modes leave and same")
	flag.IntVar(&s.leave, "leave", 490, "of the mode leave")
	flag.DurationVar(&s.p99, "p99", 100*time.Millisecond, "the bound for stored tiles")
	flag.DurationVar(&s.starved, "starved", 10*time.Second, "how long a sampler may wait for a batch")
	flag.Float64Var(&s.growth, "growth", 1.15, "the bound for the last third's highest memory over the middle third's")
	flag.Uint64Var(&s.seed, "seed", 1, "of all traces")
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	s.base, s.ids = flag.Arg(0), flag.Args()[1:]
	return s
}

func main() {
	s := parse()
	c := newClient(s)
	ctx, cancel := context.WithTimeout(context.Background(), s.duration+time.Minute)
	defer cancel()
	var err error
	switch s.mode {
	case "lab":
		err = lab(ctx, c, s)
	case "leave":
		err = leave(ctx, c, s)
	case "same":
		err = same(ctx, c, s)
	default:
		err = fmt.Errorf("no mode %q", s.mode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// newClient has a connection for every caller, as browsers do.
func newClient(s settings) *client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.MaxIdleConns, t.DisableCompression = 4096, 4096, true
	return &client{base: s.base, token: s.token, http: &http.Client{Transport: t}}
}
