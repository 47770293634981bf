package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// commentedSetting is a setting of the sample that is left at its default.
var commentedSetting = regexp.MustCompile(`(?m)^#([a-z-]+):`)

// The sample cannot rot: as it stands it loads and changes nothing, and with
// every # taken away it names each setting once, with its default.
func TestSampleFile(t *testing.T) {
	text, err := os.ReadFile("../../deploy/microtome.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defaults, _, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	addSettings(left)
	missing := map[string]bool{}
	left.VisitAll(func(f *pflag.Flag) { missing[f.Name] = true })
	for _, m := range commentedSetting.FindAllStringSubmatch(string(text), -1) {
		if !missing[m[1]] {
			t.Errorf("%s: no setting, or named twice", m[1])
		}
		delete(missing, m[1])
	}
	for name := range missing {
		t.Errorf("%s is not in the sample", name)
	}
	for name, sample := range map[string]string{
		"as it stands": string(text), "without comments": commentedSetting.ReplaceAllString(string(text), "$1:"),
	} {
		c, strange, err := load(t, nil, "--config", configFile(t, sample))
		if err != nil || len(strange) > 0 {
			t.Fatalf("%s: %v %q", name, err, strange)
		}
		if len(c.Slides) != 1 || c.Slides[0].Path != "/srv/slides" {
			t.Errorf("%s: slides %+v", name, c.Slides)
		}
		c.Slides = nil
		if got, want := emptyLists(*c), emptyLists(*defaults); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nthe defaults are %+v", name, got, want)
		}
	}
}

// emptyLists makes empty lists nil, as a comparison wants them.
func emptyLists(c config) config {
	for _, list := range []*[]string{&c.Hosts, &c.TrustedProxies, &c.CORS} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return c
}

// The unit gives the server a token and a cache where it looks for them.
func TestUnitStartsTheSample(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/microtome.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"ExecStart=/usr/local/bin/microtome serve --config /etc/microtome/microtome.yaml",
		"LoadCredential=token:/etc/microtome/token", "Environment=MICROTOME_TOKEN_FILE=%d/token",
		"CacheDirectory=microtome", "Environment=XDG_CACHE_HOME=%C",
	} {
		if !strings.Contains(string(unit), "\n"+line+"\n") {
			t.Errorf("the unit has no line %q", line)
		}
	}
}
