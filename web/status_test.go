package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/microtome/microtome/tiles"
)

func (s *site) status(t *testing.T) (st statusJSON) {
	t.Helper()
	w := s.get("/status.json")
	want(t, "status.json", w, 200, "")
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: %s", got)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestStatusOfRequests(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.Version, o.Decoder, o.Exact = "1.2.3", "a decoder", true })
	before := s.status(t)
	if a := before.Answers["stored"]; a.P50 != nil || a.P99 != nil || before.Requests.Answered != 0 {
		t.Errorf("at the start: %+v, %+v", a, before.Requests)
	}
	s.get("/slides/a.svs/levels/0/tiles/0/0")
	s.reader.change = func(a *tiles.Answer) { a.CacheHit = true }
	s.get("/slides/a.svs/levels/0/tiles/0/1")
	s.get(tileURL)
	s.get("/slides/secret.svs")
	st := s.status(t)
	if b := st.Build; b.Version != "1.2.3" || b.Decoder != "a decoder" || !b.Exact || b.Started == "" || b.Uptime < 0 {
		t.Errorf("build: %+v", b)
	}
	if r := st.Requests; r.InFlight != 1 || r.Answered != 5 || r.Sent == 0 || st.Statuses["200"] != 4 || st.Statuses["404"] != 1 {
		t.Errorf("requests: %+v %v", r, st.Statuses)
	}
	stored, rendered := st.Answers["stored"], st.Answers["rendered"]
	if stored.Miss != 1 || stored.Hit != 1 || rendered.Hit != 1 || rendered.Miss != 0 || st.Answers["empty"].Hit != 0 {
		t.Errorf("answers: %+v", st.Answers)
	}
	if stored.P50 == nil || stored.P99 == nil || *stored.P50 > *stored.P99 || *stored.P50 <= 0 {
		t.Errorf("times of stored tiles: %v, %v", stored.P50, stored.P99)
	}
	if st.Caches["answers"].HitShare != nil {
		t.Errorf("a share of nothing: %v", *st.Caches["answers"].HitShare)
	}
	page := s.get("/status").Body.String()
	if text := s.get("/status.json").Body.String() + page; strings.Contains(text, "secret") || strings.Contains(text, ".svs") {
		t.Errorf("the status names a slide: %s", text)
	}
}

func TestStatusUptimeAndShares(t *testing.T) {
	s := newSite(t, nil, nil)
	s.reader.stats.Pixels.Hits, s.reader.stats.Pixels.Misses = 1, 2
	srv := s.Handler.(*server)
	st := srv.status(srv.started.Add(90 * time.Minute))
	if st.Build.Uptime != 5400 || *st.Caches["pixels"].HitShare != .333 {
		t.Errorf("uptime %d, share %v", st.Build.Uptime, *st.Caches["pixels"].HitShare)
	}
}

// ?token= on the page enters as on the others; the data takes the cookie.
func TestStatusBehindTheToken(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.Token = "s3cret" })
	want(t, "page", s.get("/status"), 401, "token_needed")
	want(t, "data", s.get("/status.json"), 401, "token_needed")
	w := s.get("/status?token=s3cret")
	want(t, "entering", w, 303, "")
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	if w.Header().Get("Location") != "/status" || cookie == "" {
		t.Fatalf("entering: %v", w.Header())
	}
	want(t, "page with the cookie", s.get("/status", "Cookie: "+cookie), 200, "")
	want(t, "data with the cookie", s.get("/status.json", "Cookie: "+cookie), 200, "")
}

// The document describes every key of the answer, and no other.
func TestStatusSchema(t *testing.T) {
	var doc struct {
		Components struct{ Schemas map[string]schemaNode }
	}
	if err := json.Unmarshal(openAPIDocument, &doc); err != nil {
		t.Fatal(err)
	}
	s, _ := countedSite(t)
	s.get(tileURL)
	var got map[string]any
	if err := json.Unmarshal(s.get("/status.json").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	sameKeys(t, "status", got, doc.Components.Schemas["ServerStatus"])
}

type schemaNode struct {
	Properties           map[string]schemaNode
	AdditionalProperties *schemaNode
}

func sameKeys(t *testing.T, at string, got map[string]any, want schemaNode) {
	t.Helper()
	for key, value := range got {
		node, ok := want.Properties[key]
		if want.AdditionalProperties != nil {
			node, ok = *want.AdditionalProperties, true
		}
		if !ok {
			t.Errorf("%s.%s is not in the document", at, key)
		}
		if inner, isMap := value.(map[string]any); isMap {
			sameKeys(t, at+"."+key, inner, node)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want.Properties)) {
		if _, ok := got[key]; !ok {
			t.Errorf("%s.%s is in the document only", at, key)
		}
	}
}
