package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// client speaks to the server.
type client struct {
	base, token string
	http        *http.Client
}

// answer is what a request came to.
type answer struct {
	status int
	made   string // "stored", "rendered", …
	body   []byte // when it was asked for
	size   int64
}

func (c *client) do(ctx context.Context, method, path string, body []byte, keep bool) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode}
	a.made, _, _ = strings.Cut(res.Header.Get("Microtome-Tile"), ";")
	if keep {
		a.body, err = io.ReadAll(res.Body)
		return a, err
	}
	a.size, err = io.Copy(io.Discard, res.Body)
	return a, err
}

// slide is what a caller must know of a slide.
type slide struct {
	name, id      string // id is name, escaped
	width, height int64
	top           int   // the Deep Zoom level of full size
	tile          int64 // side of a Deep Zoom tile
}

// slide asks for a slide's description.
func (c *client) slide(ctx context.Context, id string) (slide, error) {
	s := slide{name: id, id: (&url.URL{Path: id}).EscapedPath()}
	a, err := c.do(ctx, http.MethodGet, "/slides/"+s.id, nil, true)
	if err != nil {
		return s, err
	}
	var info struct {
		Levels   []struct{ Width, Height int64 }
		DeepZoom struct{ Tile int64 }
	}
	if err := json.Unmarshal(a.body, &info); err != nil || a.status != http.StatusOK || len(info.Levels) == 0 || info.DeepZoom.Tile <= 0 {
		return s, fmt.Errorf("/slides/%s: %d %s", id, a.status, a.body)
	}
	s.tile = info.DeepZoom.Tile
	s.width, s.height = info.Levels[0].Width, info.Levels[0].Height
	s.top = bits.Len64(uint64(max(s.width, s.height) - 1))
	return s, nil
}

// slides describes all that were named.
func (c *client) slides(ctx context.Context, ids []string) ([]slide, error) {
	var all []slide
	for _, id := range ids {
		s, err := c.slide(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// metrics reads the server's numbers.
func (c *client) metrics(ctx context.Context) (map[string]float64, error) {
	a, err := c.do(ctx, http.MethodGet, "/metrics", nil, true)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.SplitSeq(string(a.body), "\n") {
		name, value, ok := strings.Cut(line, " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = v
		}
	}
	if _, ok := all["microtome_tiles_decodes_total"]; !ok {
		return nil, fmt.Errorf("/metrics: %d, without microtome_tiles_decodes_total", a.status)
	}
	return all, nil
}
