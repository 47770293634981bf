package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/microtome/microtome/library"
)

func TestPropertiesAreFiltered(t *testing.T) {
	s := newSite(t, nil, nil)
	var d slideJSON
	body := s.get("/slides/a.svs").Body.String()
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"Jane", "Doe", "smith", "S-123", "2009", "01/02/09", "1004486"} {
		if strings.Contains(body, secret) {
			t.Errorf("the answer holds %q: %s", secret, body)
		}
	}
	for k, v := range map[string]string{"openslide.vendor": "aperio", "openslide.mpp-x": "0.5", "aperio.AppMag": "20",
		"openslide.level[0].width": "1000", "openslide.associated.label.width": "40"} {
		if d.Properties[k] != v {
			t.Errorf("%s is %q", k, d.Properties[k])
		}
	}
	if len(d.Properties) != 5 || d.Hidden != 11 {
		t.Errorf("%d properties, %d hidden: %v", len(d.Properties), d.Hidden, d.Properties)
	}
	for _, a := range d.Associated {
		if a.Closed != (a.Name != "thumbnail") {
			t.Errorf("%s: closed %v", a.Name, a.Closed)
		}
	}
	s = newSite(t, nil, func(o *Options) { o.OpenProperties, o.OpenAssociated = true, true })
	if body := s.get("/slides/a.svs").Body.String(); !strings.Contains(body, "Jane") || !strings.Contains(body, `"properties_hidden":0`) {
		t.Errorf("opened: %s", body)
	}
	for _, name := range []string{"label", "macro", "thumbnail"} {
		want(t, name, s.get("/slides/a.svs/associated/"+name), 200, "")
	}
}

// A slide whose quickhash cannot be read is still described.
func TestUnreadableProperties(t *testing.T) {
	s := newSite(t, []string{"c.svs", "d.svs"}, nil)
	s.put(t, "c.svs", "no properties")
	s.put(t, "d.svs", "no source")
	w := s.get("/slides/c.svs")
	want(t, "corrupt", w, 200, "")
	if body := w.Body.String(); !strings.Contains(body, `"warnings":["properties: level 1: tile 0,0: corrupt"]`) || !strings.Contains(body, `"properties":{}`) {
		t.Error(body)
	}
	want(t, "no source", s.get("/slides/d.svs"), 502, "source_failed")
}

func TestLogHoldsNoNames(t *testing.T) {
	names := []string{"Jane Roe/S09-123.svs"}
	ask := func(s *site) string {
		for _, target := range []string{
			"/slides/Jane%20Roe%2FS09-123.svs", "/slides/Jane%20Roe/S09-123.svs/thumbnail", "/slides/Jane%20Roe/gone.svs",
			"/view/Jane%20Roe/S09-123.svs", "/slides?search=Jane", "/deepzoom/Jane%20Roe/S09-123.svs_files/x/0_0.jpg",
		} {
			s.get(target)
		}
		return s.log.String()
	}
	log := ask(newSite(t, names, nil))
	for _, secret := range []string{"Jane", "Roe", "S09", "gone"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q:\n%s", secret, log)
		}
	}
	if !strings.Contains(log, "slide=") || !strings.Contains(log, "request=") || !strings.Contains(log, "route=thumbnail") {
		t.Errorf("log:\n%s", log)
	}
	if log := ask(newSite(t, names, func(o *Options) { o.LogNames = true })); !strings.Contains(log, `slide="Jane Roe/S09-123.svs"`) {
		t.Errorf("with names:\n%s", log)
	}
}

func TestPageHeaders(t *testing.T) {
	s := newSite(t, nil, nil)
	for _, target := range []string{"/", "/view/a.svs"} {
		h := s.get(target).Header()
		csp := h.Get("Content-Security-Policy")
		script, _, _ := strings.Cut(csp[strings.Index(csp, "script-src"):], ";")
		if strings.Contains(script, "unsafe") || !strings.Contains(csp, "frame-ancestors 'self'") || h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Frame-Options") == "" {
			t.Errorf("%s: %v", target, h)
		}
	}
	if w := s.get("/favicon.ico"); w.Code != 200 && w.Code != 204 {
		t.Errorf("favicon: %d", w.Code)
	}
	if w := s.get("/view/none.svs"); w.Code != 404 || !strings.Contains(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("unknown slide's page: %d %v", w.Code, w.Header())
	}
}

func TestNumbersInJSON(t *testing.T) {
	nan := 0.0
	nan /= nan
	for v, want := range map[any]string{
		jsonInt(1 << 53): "9007199254740992", jsonInt(1<<53 + 1): `"9007199254740993"`, jsonInt(-5): "-5",
		jsonFloat(.25): "0.25", jsonFloat(1e300): "1e+300",
	} {
		if b, err := json.Marshal(v); err != nil || string(b) != want {
			t.Errorf("%v: %s, %v", v, b, err)
		}
	}
	if b, err := json.Marshal(jsonFloat(nan)); err != nil || string(b) != "null" {
		t.Errorf("NaN: %s, %v", b, err)
	}
}

// Why a slide cannot be read is listed, unless that would name its path.
func TestListedErrors(t *testing.T) {
	for given, want := range map[string]string{
		"": "", "ifd 0: unsupported Compression 200": "ifd 0: unsupported Compression 200",
		"open /data/Jane/x.svs: permission denied": "cannot be read", "x.svs is broken": "cannot be read",
	} {
		if got := listEntry("", library.Entry{ID: "Jane/x.svs", Err: given}).Error; got != want {
			t.Errorf("%q is listed as %q", given, got)
		}
	}
}
