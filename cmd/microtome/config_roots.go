package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/microtome/microtome/library"
)

// rootEntry is a served folder or file in a config file, when it is more than
// "NAME=PATH".
type rootEntry struct {
	Name  string   `koanf:"name"`
	Path  string   `koanf:"path"`
	Links []string `koanf:"links"`
}

// decodeRoots reads the list of slides: "PATH", "NAME=PATH", or a map of name,
// path and links. Relative paths begin at folder.
func decodeRoots(raw any, folder string) ([]library.Root, error) {
	list, err := asList(raw)
	if err != nil {
		return nil, err
	}
	var out []library.Root
	for i, item := range list {
		var r library.Root
		switch v := item.(type) {
		case string:
			r = parseRootAt(v, folder)
		case map[string]any:
			var e rootEntry
			if err := decodeInto(&e, v); err != nil {
				return nil, fmt.Errorf("slides, number %d: %w", i+1, err)
			}
			r = library.Root{Name: e.Name, Path: e.Path, Links: e.Links}
		default:
			return nil, fmt.Errorf("slides, number %d: neither a path nor a map", i+1)
		}
		if folder != "" && r.Path != "" && !filepath.IsAbs(r.Path) && !strings.Contains(r.Path, "://") {
			r.Path = filepath.Join(folder, r.Path)
		}
		out = append(out, r)
	}
	return out, nil
}

func asList(raw any) ([]any, error) {
	switch v := raw.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out, nil
	}
	return nil, fmt.Errorf("slides: not a list")
}

func parseRoot(arg string) library.Root { return parseRootAt(arg, "") }

// parseRootAt reads [NAME=]PATH. A path that exists as it stands is not cut at
// its equals sign, nor is one whose first part has a slash.
func parseRootAt(arg, folder string) library.Root {
	name, path, found := strings.Cut(arg, "=")
	if !found || name == "" || strings.ContainsAny(name, "/:") {
		return library.Root{Path: arg}
	}
	whole := arg
	if folder != "" && !filepath.IsAbs(arg) {
		whole = filepath.Join(folder, arg)
	}
	if _, err := os.Lstat(whole); err == nil {
		return library.Root{Path: arg}
	}
	return library.Root{Name: name, Path: path}
}
