package tiff_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/microtome/microtome/formats/source"
	"github.com/microtome/microtome/formats/tiff"
)

// inventory is a table of real files and what tifffile read of them, one a line
// behind a line of names.
func inventory(t *testing.T) (folder string, rows []map[string]string) {
	t.Helper()
	folder = "../../../shared"
	if v := os.Getenv("MICROTOME_DATA"); v != "" {
		folder = filepath.Dir(v)
	}
	f, err := os.Open(filepath.Join(folder, "INVENTORY.tsv"))
	if err != nil {
		t.Skip("no real files beside this repository: ", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var names []string
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if names == nil {
			names = fields
			continue
		}
		row := map[string]string{}
		for i, name := range names[:min(len(names), len(fields))] {
			row[name] = fields[i]
		}
		if row["format"] == "tiff" {
			rows = append(rows, row)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return folder, rows
}

// disagreements are files of which we say otherwise than tifffile, and rightly
// so.
func disagreements() map[string]string {
	return map[string]string{
		"data/libtiff/test_ifd_loop_subifd.tif": "five directories are in the chain before it loops; the last is left out there",
		"data/pillow/child_ifd_jpeg.tiff":       "the SubIFD has no ImageWidth; the size shown is that of its JPEG stream",
	}
}

// TestRealFiles opens every real TIFF at hand: in bounded reads, without panic,
// with the directories and sizes that tifffile found.
func TestRealFiles(t *testing.T) {
	folder, rows := inventory(t)
	opened := 0
	for _, row := range rows {
		path := filepath.Join(folder, row["path"])
		src, err := source.OpenFile(path)
		if err != nil {
			t.Errorf("%s: %v", row["path"], err)
			continue
		}
		f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
		if err == nil {
			opened++
			left := 16
			for _, d := range f.Dirs {
				exercise(t, d, &left)
			}
		}
		if err != nil {
			t.Logf("%s: %v (tifffile: %q)", row["path"], err, row["reader_error"])
		}
		if got, want := found(f, err, row); got != want && row["reader_error"] == "" && disagreements()[row["path"]] == "" {
			t.Errorf("%q: %s, tifffile says %s", row["path"], got, want)
		}
		src.Close()
	}
	t.Logf("opened %d of %d", opened, len(rows))
}

// found writes what we and tifffile say in the same words.
func found(f *tiff.File, err error, row map[string]string) (got, want string) {
	want = row["pages"] + " pages of " + row["dims_WxH"]
	if err != nil {
		return err.Error(), want
	}
	dims := sizes(f.Dirs, nil)
	dims = dims[:min(len(dims), strings.Count(want, ",")+1)] // the table cuts long lists
	return strconv.Itoa(len(f.Dirs)) + " pages of " + strings.Join(dims, ","), want
}

// sizes lists directories, each followed by its SubIFDs.
func sizes(dirs []*tiff.Dir, dims []string) []string {
	for _, d := range dirs {
		w, _, _ := d.Uint(tiff.ImageWidth)
		h, _, _ := d.Uint(tiff.ImageLength)
		form := "%dx%d"
		if d.Parent != nil {
			form = "[sub %dx%d]"
		}
		dims = sizes(d.SubDirs, append(dims, fmt.Sprintf(form, w, h)))
	}
	return dims
}
