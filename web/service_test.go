package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type openAPIParameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Required bool
	Example  any
}

type openAPIFile struct {
	Paths map[string]map[string]struct {
		Parameters  []openAPIParameter
		RequestBody struct {
			Content map[string]struct{ Example any }
		}
		Responses map[string]any
	}
	Components struct {
		Parameters map[string]openAPIParameter
		Responses  map[string]any
		Schemas    map[string]any
	}
}

// example is an address of a path, from the document's own examples.
func (f *openAPIFile) example(t *testing.T, path string) string {
	t.Helper()
	target, query := path, "?"
	for _, p := range f.Paths[path]["get"].Parameters {
		if p.Ref != "" {
			name := strings.TrimPrefix(p.Ref, "#/components/parameters/")
			var ok bool
			if p, ok = f.Components.Parameters[name]; !ok {
				t.Errorf("%s: no parameter %s", path, name)
			}
		}
		switch {
		case p.In == "path":
			target = strings.ReplaceAll(target, "{"+p.Name+"}", fmt.Sprint(p.Example))
		case p.Required:
			query += fmt.Sprintf("%s=%v&", p.Name, p.Example)
		}
	}
	return target + strings.TrimSuffix(query, "?")
}

// Every route of the document is answered, and every route is in the document.
func TestOpenAPI(t *testing.T) {
	s := newSite(t, nil, nil)
	var doc openAPIFile
	if err := json.Unmarshal(s.get("/openapi.json").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, ops := range doc.Paths {
		if post, ok := ops["post"]; ok {
			body, err := json.Marshal(post.RequestBody.Content["application/json"].Example)
			if err != nil {
				t.Fatal(err)
			}
			want(t, path, s.postTo(path, string(body)), 200, "")
			continue
		}
		target := doc.example(t, path)
		want(t, target, s.get(target), 200, "")
		for status, r := range ops["get"].Responses {
			ref, _ := r.(map[string]any)["$ref"].(string)
			if _, ok := doc.Components.Responses[strings.TrimPrefix(ref, "#/components/responses/")]; ref != "" && !ok {
				t.Errorf("%s: status %s refers to %s", path, status, ref)
			}
		}
	}
	m := s.Handler.(*server).metrics
	for i := range routeCount {
		if i == routeOther || i == routeAsset {
			continue
		}
		if m.requests[i][statusIndex(200)].Load() == 0 {
			t.Errorf("route %s is not in the document", i)
		}
	}
}

// The document's slide and list have the very keys of the answers.
func TestOpenAPISchemas(t *testing.T) {
	s := newSite(t, []string{"dir/c.svs"}, nil)
	var doc openAPIFile
	if err := json.Unmarshal(openAPIDocument, &doc); err != nil {
		t.Fatal(err)
	}
	for target, schema := range map[string]string{"/slides/a.svs": "Slide", "/slides": "List", "/healthz": "Status", "/status.json": "ServerStatus", "/slides/none": "Error"} {
		var got map[string]any
		if err := json.Unmarshal(s.get(target).Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		known := doc.Components.Schemas[schema].(map[string]any)["properties"].(map[string]any)
		for key := range got {
			if known[key] == nil {
				t.Errorf("%s: %s is not in the document", target, key)
			}
		}
	}
}

func TestReadyz(t *testing.T) {
	var ready error
	s := newSite(t, nil, func(o *Options) { o.Ready = func() error { return ready } })
	want(t, "ready", s.get("/readyz"), 200, "")
	ready = errors.New("stopping /secret")
	w := s.get("/readyz")
	want(t, "not ready", w, 503, "not_ready")
	if w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	want(t, "healthz", s.get("/healthz"), 200, "")
}

func TestMetrics(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.Version, o.Decoder = "1.2.3", "none that is real" })
	s.get(tileURL)
	s.get(tileURL)
	s.get("/slides/none.svs")
	s.do("BREW", "/x")
	page := s.get("/metrics").Body.String()
	for _, line := range []string{
		`microtome_http_requests_total{route="deepzoom",status="200"} 2`, `microtome_http_requests_total{route="slide",status="404"} 1`,
		`microtome_http_requests_total{route="other",status="405"} 1`, `microtome_pixel_answers_total{cache="miss",made="rendered"} 2`,
		`microtome_http_request_seconds_count{route="deepzoom"} 2`, `microtome_pixel_answer_seconds_count{made="rendered"} 2`, "microtome_http_requests_in_flight 1", "microtome_library_opens_total 1",
		`microtome_build_info{decoder="none that is real",exact="false",version="1.2.3"} 1`, "microtome_cache_regions_bytes", "go_goroutines",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
	if strings.Contains(page, ".svs") {
		t.Error("a metric names a slide")
	}
	newSite(t, nil, nil) // a second registry does not clash with the first
}

func TestListing(t *testing.T) {
	s := newSite(t, []string{"study/one.svs", "study/two.svs", "study/sub/three.svs"}, nil)
	ask := func(query string) listJSON { return s.list(t, query) }
	if l := ask(""); len(l.Folders) != 1 || l.Folders[0].Path != "study" || l.Folders[0].URL != "/slides?folder=study" || l.Total != 2 || l.Limit != 100 {
		t.Errorf("top: %+v", l)
	}
	if l := ask("?folder=study"); l.Total != 2 || l.Folders[0].Path != "study/sub" || l.Folders[0].Name != "sub" || l.Folders[0].URL != "/slides?folder=study%2Fsub" {
		t.Errorf("study: %+v", l)
	}
	if l := ask("?folder=study%2Fsub"); l.Total != 1 || l.Slides[0].ID != "study/sub/three.svs" || l.Slides[0].URL != "/slides/study%2Fsub%2Fthree.svs" {
		t.Errorf("sub: %+v", l)
	}
	if l := ask("?recursive=true&offset=1&limit=2"); l.Total != 5 || len(l.Slides) != 2 || l.Offset != 1 || l.Limit != 2 {
		t.Errorf("page: %+v", l)
	}
	if l := ask("?search=TWO"); l.Total != 1 || l.Slides[0].Name != "two.svs" || l.Slides[0].Bytes == 0 || l.Slides[0].Modified == "" {
		t.Errorf("search: %+v", l)
	}
}
