package web

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
)

// countedLibrary is a Library that has counted what the test says.
type countedLibrary struct {
	Library
	stats library.Stats
}

func (l *countedLibrary) Stats() library.Stats { return l.stats }

// fill sets every number below v to one of its own, from 1001 on, and remembers
// under which name; flags become true.
func fill(v reflect.Value, name string, named map[int64]string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), name+"."+v.Type().Field(i).Name, named)
		}
	case reflect.Int, reflect.Int64:
		n := int64(1001 + len(named))
		v.SetInt(n)
		named[n] = name
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice: // devices: one stands for all
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name, named)
	case reflect.String:
		v.SetString("ready")
	case reflect.Map:
		n := int64(1001 + len(named))
		v.Set(reflect.ValueOf(map[string]int64{"SOF progressive (SOF2)": n}))
		named[n] = name
	default:
		panic(name + ": a kind that a count never had")
	}
}

// countedSite is a site whose packages below have counted everything, and what
// they counted, by number.
func countedSite(t *testing.T) (*site, map[int64]string) {
	t.Helper()
	var lib library.Stats
	var decodes microtome.DecodeStats
	named := map[int64]string{}
	s := newSite(t, nil, func(o *Options) {
		fill(reflect.ValueOf(&lib).Elem(), "library.Stats", named)
		fill(reflect.ValueOf(&decodes).Elem(), "DecodeStats", named)
		o.Library = &countedLibrary{o.Library, lib}
		o.Decodes = func() microtome.DecodeStats { return decodes }
		o.Version, o.Decoder, o.Exact = "1.2.3", "a decoder", true
	})
	fill(reflect.ValueOf(&s.reader.stats).Elem(), "tiles.Stats", named)
	return s, named
}

// What is counted is told: a new count of a package below fails here until it
// has a figure, and a place in the status.
func TestEveryCountIsTold(t *testing.T) {
	s, named := countedSite(t)
	page := s.get("/metrics").Body.String()
	for n, name := range named {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^microtome_\S.* %d$`, n)).MatchString(page) {
			t.Errorf("/metrics does not tell %s: add a figure in stats.go", name)
		}
	}
	body := s.get("/status.json").Body.String()
	for n, name := range named {
		if !regexp.MustCompile(fmt.Sprintf(`:%d[,}]`, n)).MatchString(body) {
			t.Errorf("/status.json does not tell %s: add it in status.go", name)
		}
	}
	for _, line := range []string{
		"microtome_library_scanning 1", "microtome_pyramids_building 1", "# TYPE microtome_decode_waiting gauge",
		"# TYPE microtome_decode_tiles_total counter", "# TYPE microtome_cache_pixels_budget_bytes gauge",
		`microtome_decode_unsupported_total{reason="SOF progressive (SOF2)"} `,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
}

// Each number stands under its right name: two that changed places would pass
// the test above.
func TestCountsUnderTheirNames(t *testing.T) {
	s, named := countedSite(t)
	number := map[string]string{}
	for n, name := range named {
		number[name] = fmt.Sprint(n)
	}
	page := s.get("/metrics").Body.String()
	for metric, name := range map[string]string{
		"library_open_slides": "library.Stats.Open", "library_evicted_total": "library.Stats.Evicted",
		`decode_tiles_total{how="whole"}`: "DecodeStats.Full", `decode_tiles_total{how="partial"}`: "DecodeStats.Partial",
		`decode_tiles_total{how="reduced"}`: "DecodeStats.Reduced", "decode_crops_total": "DecodeStats.Cropped",
		"decode_encodes_total": "DecodeStats.Encoded", "decode_refused_total": "DecodeStats.Busy",
		`decode_failures_total{why="corrupt"}`: "DecodeStats.Corrupt", `decode_failures_total{why="limit"}`: "DecodeStats.Limited",
		"decode_dropped_total": "DecodeStats.Dropped", "decode_running": "DecodeStats.Running", "decode_waiting": "DecodeStats.Waiting",
		"tiles_decodes_total": "tiles.Stats.Decodes", "pyramids_opened_total": "tiles.Stats.Pyramids.Opened",
		"cache_answers_hits_total": "tiles.Stats.Answers.Hits", "cache_regions_misses_total": "tiles.Stats.Regions.Misses",
		"cache_pixels_budget_bytes": "tiles.Stats.Pixels.MaxBytes", "cache_patches_cancelled_total": "tiles.Stats.Patches.Cancelled",
	} {
		if line := "\nmicrotome_" + metric + " " + number[name] + "\n"; number[name] == "" || !strings.Contains(page, line) {
			t.Errorf("no line %q for %s", line, name)
		}
	}
	var st statusJSON
	if err := json.Unmarshal(s.get("/status.json").Body.Bytes(), &st); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]int64{
		"DecodeStats.Waiting": int64(st.Decodes.Waiting), "DecodeStats.Dropped": st.Decodes.Dropped, "DecodeStats.Busy": st.Decodes.Busy,
		"DecodeStats.Full": st.Decodes.Whole, "DecodeStats.Partial": st.Decodes.Partial, "DecodeStats.Reduced": st.Decodes.Reduced,
		"tiles.Stats.Regions.MaxBytes": st.Caches["regions"].Budget, "tiles.Stats.Patches.Evicted": st.Caches["patches"].Evicted,
		"tiles.Stats.Answers.Refused": st.Caches["answers"].Refused, "library.Stats.Known": int64(st.Slides.Known),
		"tiles.Stats.Pyramids.Built": st.Pyramids.Built, "tiles.Stats.DecodeErrors": st.Decodes.Failed,
	} {
		if fmt.Sprint(got) != number[name] {
			t.Errorf("status: %s is %d, counted %s", name, got, number[name])
		}
	}
}

// A reason is a label and a word on a page, whatever the decoder says.
func TestReasonsAreTamed(t *testing.T) {
	long := strings.Repeat("x", 200)
	got := reasons(map[string]int64{"a\xffb": 1, long + "1": 2, long + "2": 4, "fine": 8})
	if want := map[string]int64{"a?b": 1, long[:80]: 6, "fine": 8}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s := newSite(t, nil, func(o *Options) {
		o.Decodes = func() microtome.DecodeStats {
			return microtome.DecodeStats{Unsupported: map[string]int64{"bad \xff\"\n": 3}}
		}
	})
	want(t, "metrics", s.get("/metrics"), 200, "")
	want(t, "status", s.get("/status.json"), 200, "")
}
