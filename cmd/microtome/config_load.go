package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/microtome/microtome/library"
)

const (
	envPrefix = "MICROTOME_"
	slidesKey = "slides"
	// configVariable names config files when no flag does.
	configVariable = envPrefix + "CONFIG"
	// noDelim splits no key: settings are flat, and a name may hold a dot.
	noDelim = "\x00"
)

// pathKeys are settings that, in a file, are taken from that file's folder.
var pathKeys = []string{"token-file", "pyramid-dir"}

// loader gathers the settings: files in their order, then the environment, then
// flags that were given; later ones win. The flags hold the defaults.
type loader struct {
	k       *koanf.Koanf
	flags   *pflag.FlagSet
	environ func() []string
	slides  []library.Root
	strange []string // variables that look like ours and are not
}

// loadConfig returns the checked settings of a serve command line, and the
// variables MICROTOME_* that mean nothing.
func loadConfig(flags *pflag.FlagSet, files, paths []string, environ func() []string) (*config, []string, error) {
	ld := &loader{k: koanf.New(noDelim), flags: flags, environ: environ}
	if len(files) == 0 {
		files = configFiles(environ())
	}
	for _, file := range files {
		if err := ld.addFile(file); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := ld.addEnvironment(); err != nil {
		return nil, nil, fmt.Errorf("environment: %w", err)
	}
	if err := ld.addFlags(); err != nil {
		return nil, nil, err
	}
	if len(paths) > 0 { // what the command line names replaces the rest
		ld.slides = nil
		for _, p := range paths {
			ld.slides = append(ld.slides, parseRoot(p))
		}
	}
	c := &config{}
	if err := decodeInto(c, ld.k.Raw()); err != nil {
		return nil, nil, err
	}
	c.Slides = ld.slides
	if err := c.finish(); err != nil {
		return nil, nil, err
	}
	return c, ld.strange, nil
}

// configFiles are the files that the environment names, separated by commas.
func configFiles(environ []string) []string {
	for _, v := range environ {
		if list, ok := strings.CutPrefix(v, configVariable+"="); ok && list != "" {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// finish reads the token's file and checks everything.
func (c *config) finish() error {
	if c.TokenFile != "" && c.Token == "" {
		b, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return fmt.Errorf("token-file: %w", err)
		}
		if c.Token = strings.TrimSpace(string(b)); c.Token == "" {
			return fmt.Errorf("token-file: %s is empty", c.TokenFile)
		}
	}
	for _, r := range c.Slides {
		if strings.Contains(r.Path, "://") {
			return fmt.Errorf("%s: slides behind a URL are not served yet: give a folder or a file", r.Path)
		}
		if r.Path == "" {
			return fmt.Errorf("slides: a root has no path")
		}
	}
	return c.validate()
}

// known says whether key is a setting.
func (ld *loader) known(key string) bool { return settingFlag(ld.flags, key) != nil }

// settingFlag returns the flag of a setting: not every flag is one.
func settingFlag(flags *pflag.FlagSet, key string) *pflag.Flag {
	if slices.Contains([]string{"config", "help"}, key) {
		return nil
	}
	return flags.Lookup(key)
}

func (ld *loader) addFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	own := koanf.New(noDelim)
	if len(bytes.TrimSpace(text)) > 0 {
		if err := own.Load(rawbytes.Provider(text), yaml.Parser()); err != nil {
			return err
		}
	}
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	raw := own.Raw()
	for key, value := range raw {
		if key == slidesKey {
			if ld.slides, err = decodeRoots(value, folder); err != nil {
				return err
			}
			continue
		}
		if !ld.known(key) {
			return fmt.Errorf("unknown key %q", key)
		}
		if value == nil {
			return fmt.Errorf("%s: no value (quote one that begins with #)", key)
		}
		if text, ok := value.(string); ok && slices.Contains(pathKeys, key) && text != "" && !filepath.IsAbs(text) {
			value = filepath.Join(folder, text)
		}
		if err := ld.k.Set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// addEnvironment takes MICROTOME_LISTEN as listen, and so on; lists are
// separated by commas.
func (ld *loader) addEnvironment() error {
	var failed error
	provider := env.Provider(noDelim, env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: ld.environ,
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-")
			switch {
			case value == "": // as if it were not set
				return "", nil
			case key == slidesKey:
				ld.slides, failed = decodeRoots(strings.Split(value, ","), "")
				return "", nil
			case name == configVariable || name == pythonVariable:
				return "", nil
			case !ld.known(key):
				ld.strange = append(ld.strange, name)
				return "", nil
			case ld.flags.Lookup(key).Value.Type() == "stringSlice":
				return key, strings.Split(value, ",")
			}
			return key, value
		},
	})
	if err := ld.k.Load(provider, nil); err != nil {
		return err
	}
	return failed
}

func (ld *loader) addFlags() error {
	return ld.k.Load(posflag.ProviderWithFlag(ld.flags, noDelim, ld.k, func(f *pflag.Flag) (string, any) {
		if !ld.known(f.Name) {
			return "", nil
		}
		return f.Name, posflag.FlagVal(ld.flags, f)
	}), nil)
}

// decodeInto fills out from raw: texts become durations, sizes, colours and
// levels, and a key that out does not have is an error.
func decodeInto(out, raw any) error {
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		TagName: "koanf", Result: out, ErrorUnused: true, WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			refuseBareDuration,
			mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.TextUnmarshallerHookFunc(),
		),
	})
	if err != nil {
		return err
	}
	err = d.Decode(raw)
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) { // without the heading that stands above them
		return errors.Join(several.Unwrap()...)
	}
	return err
}

// refuseBareDuration keeps "check-every: 5" from meaning 5 ns.
func refuseBareDuration(from, to reflect.Type, data any) (any, error) {
	if to == reflect.TypeFor[time.Duration]() && from != to && from.Kind() != reflect.String {
		return nil, fmt.Errorf("%v needs a unit, as in 5s", data)
	}
	return data, nil
}
