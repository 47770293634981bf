package web

import (
	"net/http"
	"runtime"
	"time"

	"github.com/microtome/microtome/tiles"
	"github.com/microtome/microtome/web/viewer"
)

// statusJSON is what /status.json says. The page shows every value of it, under
// the key's own name where it knows no better one; values that the page is to
// read as bytes, milliseconds, seconds or shares end so. Nothing in it names a
// slide.
type statusJSON struct {
	Build       buildJSON             `json:"build"`
	Requests    requestsJSON          `json:"requests"`
	Statuses    map[string]int64      `json:"requests_by_status"`
	Answers     map[string]answerJSON `json:"answers"`
	Decodes     decodesJSON           `json:"decodes"`
	Unsupported map[string]int64      `json:"unsupported"`
	Batches     batchesJSON           `json:"batches"`
	Reads       readsJSON             `json:"reads"`
	Caches      map[string]cacheJSON  `json:"caches"`
	Devices     map[string]deviceJSON `json:"devices,omitempty"`
	ByCPU       map[string]int64      `json:"devices_by_cpu,omitempty"`
	Stages      map[string]int64      `json:"devices_stages_ns,omitempty"`
	Slides      slidesJSON            `json:"slides"`
	Pyramids    pyramidsJSON          `json:"pyramids"`
}

type buildJSON struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	Decoder string `json:"decoder"`
	Exact   bool   `json:"exact"`
	Started string `json:"started"`
	Uptime  int64  `json:"uptime_seconds"`
}

type requestsJSON struct {
	InFlight int64 `json:"in_flight"`
	Answered int64 `json:"answered"`
	Sent     int64 `json:"sent_bytes"`
}

// answerJSON tells of the pixel answers that were made in one way. The times are
// null before the first.
type answerJSON struct {
	Hit  int64    `json:"hit"`
	Miss int64    `json:"miss"`
	P50  *float64 `json:"p50_ms"`
	P99  *float64 `json:"p99_ms"`
}

type decodesJSON struct {
	Running  int   `json:"running"`
	Waiting  int   `json:"waiting"`
	Asked    int64 `json:"asked"`
	Whole    int64 `json:"whole"`
	Partial  int64 `json:"partial"`
	Reduced  int64 `json:"reduced"`
	Cropped  int64 `json:"cropped"`
	Encoded  int64 `json:"encoded"`
	Encodes  int64 `json:"encodes"`
	Dropped  int64 `json:"dropped"`
	Busy     int64 `json:"busy"`
	Failed   int64 `json:"failed"`
	Corrupt  int64 `json:"corrupt"`
	Limited  int64 `json:"limited"`
	Previews int64 `json:"previews"`
}

type batchesJSON struct {
	Making  int64 `json:"making"`
	Waiting int64 `json:"waiting"`
	Memory  int64 `json:"memory_bytes"`
	Refused int64 `json:"refused"`
	Patches int64 `json:"patches"`
	Failed  int64 `json:"failed"`
}

type readsJSON struct {
	Tiles     int64 `json:"tiles"`
	Reads     int64 `json:"reads"`
	TileBytes int64 `json:"tile_bytes"`
	ReadBytes int64 `json:"read_bytes"`
	Ahead     int64 `json:"ahead"`
	AheadUsed int64 `json:"ahead_used"`
}

type cacheJSON struct {
	Bytes     int64    `json:"bytes"`
	Budget    int64    `json:"budget_bytes"`
	Items     int64    `json:"items"`
	Hits      int64    `json:"hits"`
	Misses    int64    `json:"misses"`
	HitShare  *float64 `json:"hit_share"`
	Joined    int64    `json:"joined"`
	Loads     int64    `json:"loads"`
	Failed    int64    `json:"failed"`
	Cancelled int64    `json:"cancelled"`
	Evicted   int64    `json:"evicted"`
	Refused   int64    `json:"refused"`
}

type slidesJSON struct {
	Open     int   `json:"open"`
	Known    int   `json:"known"`
	Scanning bool  `json:"scanning"`
	Opened   int64 `json:"opened"`
	Failed   int64 `json:"failed"`
	Checked  int64 `json:"checked"`
	Replaced int64 `json:"replaced"`
	Evicted  int64 `json:"evicted"`
	Scans    int64 `json:"scans"`
}

type pyramidsJSON struct {
	Building bool  `json:"building"`
	Built    int64 `json:"built"`
	Taken    int64 `json:"taken"`
	Failed   int64 `json:"failed"`
	Evicted  int64 `json:"evicted"`
}

// statusPage answers /status, for people.
func (s *server) statusPage(x *exchange, r *http.Request) error {
	x.route = routeStatus
	return s.page(x, r, viewer.StatusPage, http.StatusOK)
}

// statusData answers /status.json.
func (s *server) statusData(x *exchange, r *http.Request) error {
	x.route = routeStatus
	x.Header()["Cache-Control"] = headerNoStore
	x.writeJSON(r, http.StatusOK, s.status(time.Now()))
	return nil
}

func (s *server) status(now time.Time) *statusJSON {
	c := readCounts(s.opt)
	l, t, d := &c.library, &c.tiles, &c.decode
	st := &statusJSON{
		Build: buildJSON{
			Version: s.opt.Version, Go: runtime.Version(), Decoder: s.opt.Decoder, Exact: s.opt.Exact,
			Started: s.started.UTC().Format(time.RFC3339), Uptime: int64(now.Sub(s.started).Seconds()),
		},
		Decodes: decodesJSON{
			Running: d.Running, Waiting: d.Waiting, Asked: t.Decodes, Whole: d.Full, Partial: d.Partial, Reduced: d.Reduced,
			Cropped: d.Cropped, Encoded: d.Encoded, Encodes: t.Encodes, Dropped: d.Dropped, Busy: d.Busy,
			Failed: t.DecodeErrors, Corrupt: d.Corrupt, Limited: d.Limited, Previews: t.Previews,
		},
		Unsupported: reasons(d.Unsupported),
		Batches:     batchesJSON{Making: t.Batches, Waiting: t.BatchesWaiting, Memory: t.Making, Refused: t.Busy},
		Reads: readsJSON{
			Tiles: t.Read.Tiles, Reads: t.Read.Reads, TileBytes: t.Read.TileBytes, ReadBytes: t.Read.ReadBytes,
			Ahead: t.AheadSent, AheadUsed: t.AheadUsed,
		},
		Caches: map[string]cacheJSON{},
		Slides: slidesJSON{
			Open: l.Open, Known: l.Known, Scanning: l.Scanning, Opened: l.Opens, Failed: l.Failures,
			Checked: l.Checks, Replaced: l.Replaced, Evicted: l.Evicted, Scans: l.Scans,
		},
		Pyramids: pyramidsJSON{
			Building: t.Pyramids.Building, Built: t.Pyramids.Built, Taken: t.Pyramids.Opened,
			Failed: t.Pyramids.Failed, Evicted: t.Pyramids.Evicted,
		},
	}
	for i, name := range cacheNames {
		st.Caches[name] = statusOfCache(&c.caches[i])
	}
	st.devices(t.Devices)
	s.metrics.status(st)
	return st
}

func statusOfCache(c *tiles.CacheStats) cacheJSON {
	return cacheJSON{
		Bytes: c.Bytes, Budget: c.MaxBytes, Items: c.Items,
		Hits: c.Hits, Misses: c.Misses, HitShare: share(c.Hits, c.Hits+c.Misses), Joined: c.Joined,
		Loads: c.Loads, Failed: c.Errors, Cancelled: c.Cancelled, Evicted: c.Evicted, Refused: c.Refused,
	}
}

// share is part of whole, 0 to 1; nil of nothing.
func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return rounded(float64(part) / float64(whole))
}

// status fills in what web itself counts.
func (m *metrics) status(st *statusJSON) {
	st.Requests.InFlight = m.inFlight.Load()
	st.Batches.Patches, st.Batches.Failed = m.items[0].Load(), m.items[1].Load()
	st.Statuses, st.Answers = map[string]int64{}, map[string]answerJSON{}
	for route := range routeCount {
		st.Requests.Sent += m.sent[route].Load()
		for i := range m.requests[route] {
			if n := m.requests[route][i].Load(); n > 0 {
				st.Requests.Answered += n
				st.Statuses[statusName(i)] += n
			}
		}
	}
	for i, name := range madeNames {
		st.Answers[name] = answerJSON{
			Miss: m.answers[2*i].Load(), Hit: m.answers[2*i+1].Load(),
			P50: m.made[i].millis(.5), P99: m.made[i].millis(.99),
		}
	}
}
