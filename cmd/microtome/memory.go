package main

import (
	"os"
	"runtime/debug"
)

// heapBeside is the heap that the default limit leaves for everything beside
// the two caches and batches: open slides, answers on their way, decodes under way.
const heapBeside = 112 << 20

// limitMemory sets the soft limit of the Go heap: the collector works harder
// when the heap comes near it, so that garbage of a burst does not double what
// the process holds. What C libraries allocate is beside it; the bound on
// decodes at once bounds that. A GOMEMLIMIT in the environment is left alone.
func limitMemory(c *config) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(c.MemoryLimit)
	if limit == 0 {
		limit = int64(c.AnswersMemory+c.PixelsMemory+c.BatchMemory) + heapBeside
	}
	debug.SetMemoryLimit(limit)
}
