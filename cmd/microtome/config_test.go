package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/microtome/microtome/library"
)

// load reads settings as `serve` does.
func load(t *testing.T, environ []string, args ...string) (*config, []string, error) {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	files := flags.StringArray("config", nil, "")
	addSettings(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return loadConfig(flags, *files, flags.Args(), func() []string { return environ })
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDefaults(t *testing.T) {
	c, _, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.AnswersMemory != 48<<20 || c.PixelsMemory != 64<<20 || c.PyramidSize != 2<<30 ||
		c.CheckEvery != time.Second || *c.Background != (hexColour{255, 255, 255}) || c.MaxOpen != 256 || c.Quality != 80 ||
		c.ShowAssociated || c.ShowProperties || c.LogNames || len(c.Slides) != 0 {
		t.Errorf("defaults: %+v", c)
	}
}

func TestPrecedence(t *testing.T) {
	one := configFile(t, "quality: 10\nmax-open: 10\nhosts: [a, b]\nlisten: 127.0.0.1:1\nworkers: 1\n")
	two := configFile(t, "quality: 20\nlisten: 127.0.0.1:2\nworkers: 2\n")
	env := []string{"MICROTOME_LISTEN=127.0.0.1:3", "MICROTOME_WORKERS=3", "MICROTOME_CORS=x,y", "MICROTOME_TOKEN=", "HOME=/h"}
	c, strange, err := load(t, env, "--config", one, "--config", two, "--workers", "4")
	if err != nil || len(strange) != 0 {
		t.Fatal(err, strange)
	}
	if c.MaxOpen != 10 || c.Quality != 20 || c.Listen != "127.0.0.1:3" || c.Workers != 4 {
		t.Errorf("first file %d, second %d, environment %s, flag %d", c.MaxOpen, c.Quality, c.Listen, c.Workers)
	}
	if !reflect.DeepEqual(c.Hosts, []string{"a", "b"}) || !reflect.DeepEqual(c.CORS, []string{"x", "y"}) {
		t.Errorf("lists: %q %q", c.Hosts, c.CORS)
	}
}

func TestConfigFilesFromEnvironment(t *testing.T) {
	one, two := configFile(t, "quality: 10\nworkers: 1\n"), configFile(t, "quality: 20\n")
	env := []string{"MICROTOME_CONFIG=" + one + "," + two}
	c, strange, err := load(t, env)
	if err != nil || len(strange) != 0 || c.Quality != 20 || c.Workers != 1 {
		t.Errorf("quality %d, workers %d, %q, %v", c.Quality, c.Workers, strange, err)
	}
	if c, _, err = load(t, env, "--config", one); err != nil || c.Quality != 10 {
		t.Errorf("beside a flag: quality %d, %v", c.Quality, err)
	}
}

func TestStrangeVariablesAreNamed(t *testing.T) {
	_, strange, err := load(t, []string{"MICROTOME_TOKNE=x"})
	if err != nil || !reflect.DeepEqual(strange, []string{"MICROTOME_TOKNE"}) {
		t.Errorf("%q, %v", strange, err)
	}
}

func TestRefusedSettings(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"lisen: x", `unknown key "lisen"`},
		{"config: x.yaml", `unknown key "config"`},
		{"help: true", `unknown key "help"`},
		{"slides:\n - {name: a, path: b, link: c}", "link"},
		{"slides: [{name: a}]", "no path"},
		{"slides: [[a]]", "neither"},
		{"slides: a", "not a list"},
		{"slides: ['https://example.org/a.svs']", "URL"},
		{"quality: 0", "quality"},
		{"quality: high\nworkers: high", "'workers'"},
		{"answers-memory: 12Q", "answers-memory"},
		{"answers-memory: -1", "answers-memory"},
		{"background: #fff", "quote"},
		{"background: white", "background"},
		{"check-every: 5", "unit"},
		{"check-every: 0s", "check-every"},
		{"shutdown-delay: -1s", "shutdown-delay"},
		{"log-level: loud", "log-level"},
		{"log-format: xml", "log-format"},
		{"base-path: slides", "base-path"},
		{"trusted-proxies: [proxy]", "trusted-proxies"},
		{"device: nvidia:x", "numbers of devices"},
		{"device: nvidia:0,0", "numbers of devices"},
		{"device: amd:x", "such as amd:0,1"},
		{"device: gpu", "not cpu"},
		{"device: cpu:1", "no number"},
		{"token: a\ninsecure: true", "exclude"},
		{"token-file: none.txt", "none.txt"},
		{"max-open: 0", "max-open"},
		{"max-pixels: 0", "max-pixels"},
		{"workers: -1", "workers"},
		{"queue: -1", "queue"},
		{"listen: [", "yaml"},
	} {
		t.Run(c.file, func(t *testing.T) {
			_, _, err := load(t, nil, "--config", configFile(t, c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "decoding failed") {
				t.Errorf("got %v, want a word of %q", err, c.want)
			}
		})
	}
}

func TestTokenFile(t *testing.T) {
	secret := configFile(t, "  s3cret\n")
	c, _, err := load(t, nil, "--token-file", secret)
	if err != nil || c.Token != "s3cret" {
		t.Errorf("%q, %v", c.Token, err)
	}
	if _, _, err := load(t, nil, "--token-file", configFile(t, "\n")); err == nil {
		t.Error("an empty token was taken")
	}
}

func TestRoots(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a=b.svs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "c.yaml")
	text := "slides:\n - rel\n - n=rel/x\n - a=b.svs\n - {name: m, path: /abs, links: [l]}\npyramid-dir: pyr\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, _, err := load(t, nil, "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	want := []library.Root{
		{Path: filepath.Join(dir, "rel")}, {Name: "n", Path: filepath.Join(dir, "rel/x")},
		{Path: filepath.Join(dir, "a=b.svs")}, {Name: "m", Path: "/abs", Links: []string{"l"}},
	}
	if !reflect.DeepEqual(c.Slides, want) {
		t.Errorf("file: %+v", c.Slides)
	}
	if c.PyramidDir != filepath.Join(dir, "pyr") {
		t.Errorf("pyramid-dir: %s", c.PyramidDir)
	}
	c, _, err = load(t, []string{"MICROTOME_SLIDES=/e,n=/f"}, "--config", file)
	if want := []library.Root{{Path: "/e"}, {Name: "n", Path: "/f"}}; err != nil || !reflect.DeepEqual(c.Slides, want) {
		t.Errorf("environment: %+v, %v", c.Slides, err)
	}
	exists := filepath.Join(dir, "a=b.svs")
	c, _, err = load(t, []string{"MICROTOME_SLIDES=/e"}, "--config", file, "x=/y", "/z/q=r", exists)
	if want := []library.Root{{Name: "x", Path: "/y"}, {Path: "/z/q=r"}, {Path: exists}}; err != nil || !reflect.DeepEqual(c.Slides, want) {
		t.Errorf("arguments: %+v, %v", c.Slides, err)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"0": 0, "12": 12, "12B": 12, "1k": 1024, "1KiB": 1024, "1 KB": 1000, "64M": 64 << 20, "64MB": 64e6, "2gib": 2 << 30, "1T": 1 << 40,
	} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "M", "-1", "1.5G", "1X", "1iB", "1MM", "9999999999999999999", "9223372036854775807T", "1 2"} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: taken as %d", text, b)
		}
	}
}

// The page and the example cannot rot: the page names every setting with its
// default, and nothing else; the example loads.
func TestConfigurationPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") {
			cells := strings.Split(line, "|")
			rows[strings.Trim(cells[1], "` ")] = strings.Trim(cells[2], "` ")
		}
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	addSettings(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		def, ok := rows[f.Name]
		if want := strings.Trim(f.DefValue, "[]"); !ok || def != want {
			t.Errorf("%s: the page says %q (%v), the default is %q", f.Name, def, ok, want)
		}
		delete(rows, f.Name)
	})
	for name := range rows {
		t.Errorf("the page describes %q, which is no setting", name)
	}
}

func TestEverySettingHasAField(t *testing.T) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	addSettings(flags)
	n := 0
	for f := range fieldsOf(reflect.TypeFor[config]()) {
		n++
		if flags.Lookup(f) == nil {
			t.Errorf("the key %q has no flag", f)
		}
	}
	flags.VisitAll(func(*pflag.Flag) { n-- })
	if n != 0 {
		t.Errorf("%d more keys than flags", n)
	}
}

func fieldsOf(typ reflect.Type) map[string]bool {
	out := map[string]bool{}
	for i := range typ.NumField() {
		if key := typ.Field(i).Tag.Get("koanf"); key != "" && key != "-" {
			out[key] = true
		}
	}
	return out
}

func TestExampleFile(t *testing.T) {
	text, err := os.ReadFile("../../docs/microtome.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secret := configFile(t, "s3cret")
	c, _, err := load(t, nil, "--config", configFile(t, strings.ReplaceAll(string(text), "/run/secrets/microtome-token", secret)))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkListen(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if len(c.Slides) != 3 || c.Slides[1].Name != "archive" || c.Slides[2].Links[0] != "studies/2024" || c.Token != "s3cret" || c.loopback {
		t.Errorf("the example means %+v", c)
	}
}
