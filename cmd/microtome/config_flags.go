package main

import (
	"time"

	"github.com/spf13/pflag"
)

// addSettings defines every setting with its default. A setting's flag is also
// its key in a config file and, with MICROTOME_ before it, its variable.
func addSettings(f *pflag.FlagSet) {
	f.SortFlags = false
	addDoorSettings(f)
	addEngineSettings(f)
	addOperationSettings(f)
}

func addDoorSettings(f *pflag.FlagSet) {
	f.String("listen", "127.0.0.1:8080", "`address` to listen on, or unix:/path; beyond loopback a token or --insecure is needed")
	f.String("token", "", "`secret` that every request must carry (better in MICROTOME_TOKEN or a file: others see the command line)")
	f.String("token-file", "", "`file` that holds the token")
	f.Bool("insecure", false, "listen beyond loopback without a token")
	f.String("base-path", "/", "`path` that everything lies below, behind a proxy")
	f.Bool("open", false, "open the gallery in a browser")
	f.StringSlice("hosts", nil, "host `names` that requests may name, beside addresses and localhost; * for any")
	f.StringSlice("trusted-proxies", nil, "`networks` of proxies whose X-Forwarded headers are believed")
	f.StringSlice("cors", nil, "`origins` whose scripts may read answers; * for any")
	f.Bool("public-cache", false, "let shared caches keep answers (never with a token)")
	f.Bool("show-associated", false, "serve label and macro, which may show a patient's name")
	f.Bool("show-properties", false, "serve properties that may name a patient (file names, dates, users, barcodes)")
}

func addEngineSettings(f *pflag.FlagSet) {
	f.String("device", "cpu", "where batches of patches are made: cpu, nvidia, nvidia:0,1, amd, amd:0,1 (refused when it can't be used), or auto for the first of these vendors that can")
	f.String("device-memory", "0", "`size` of a device's memory for tiles and batches; 0 for half of what is free")
	f.String("device-libraries", "", "`folder` of the GPU vendor's libraries (default: the system's)")
	f.Int("device-sample", 1000, "one in so many tiles of a device is decoded on the CPU too and compared; 0 for none")
	f.String("qualification-dir", "", "`folder` of the verdicts of doctor --qualify, without which no GPU is used (default: in the user's cache folder)")
	f.Int("workers", 0, "decodes at once; 0 for one per processor (GOMAXPROCS)")
	f.Int("queue", 0, "decodes that may wait before requests are refused; 0 for the default of the engine")
	f.Int("quality", 80, "quality of JPEG and WebP answers, 1 to 100")
	f.String("background", "#ffffff", "`colour` of what is not stored, where the slide does not say")
	f.Int64("max-pixels", 64<<20, "largest answer, in pixels")
	f.String("answers-memory", "48MiB", "`size` of the cache of encoded answers")
	f.String("pixels-memory", "64MiB", "`size` of the cache of decoded tiles")
	f.String("batch-memory", "256MiB", "`size` of all batches of patches, and large answers, that are under way")
	f.String("memory-limit", "0", "soft limit of the Go heap, a `size`; 0 for both caches, batch-memory and 112 MiB (GOMEMLIMIT wins)")
	f.String("pyramid-dir", "", "`folder` for levels built for slides that have none (default: the user's cache folder)")
	f.String("pyramid-size", "2GiB", "`size` that folder may grow to")
}

func addOperationSettings(f *pflag.FlagSet) {
	f.Int("max-open", 256, "slides kept open while nobody uses them")
	f.Duration("check-every", time.Second, "how long an open slide is trusted before its file is looked at again")
	f.Duration("rescan-every", time.Minute, "how often the folders are read again when nobody asks")
	f.Duration("shutdown-delay", 0, "how long to go on serving after a stop signal, with /readyz saying 503")
	f.Duration("shutdown-timeout", 10*time.Second, "how long requests under way may take after that")
	f.String("log-level", "info", "least `level` to log: debug, info, warn, error")
	f.String("log-format", "text", "text or json")
	f.Bool("log-names", false, "log slide names in clear (they may name a patient); otherwise a hash stands there")
	f.Duration("slow-request", 2*time.Second, "log requests that take longer")
}
