package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/qualify"
)

// qualification is what came of a device's battery, as it is printed and kept. It
// holds no time and nothing that varies: on one host it is the same each time.
type qualification struct {
	Battery    int                `json:"battery"`
	Device     string             `json:"device"` // as --device named it
	Passed     bool               `json:"passed"`
	Build      string             `json:"build"`
	Commit     string             `json:"commit"`
	For        qualifiedFor       `json:"for"`
	Libraries  []qualifiedLibrary `json:"libraries"`
	Samplings  []doctorSampling   `json:"samplings"`
	Steps      []qualify.Step     `json:"steps"`
	NotClaimed []string           `json:"not_claimed"`
}

// qualifiedFor is what a pass is for: nothing else passes by it.
type qualifiedFor struct {
	Vendor  string `json:"vendor"`
	Name    string `json:"name"`
	PCI     string `json:"pci"`
	Arch    string `json:"arch"`
	Driver  string `json:"driver"`  // of the library
	Kernel  string `json:"kernel"`  // of the module, or of Linux where that has none
	API     string `json:"api"`     // the newest that the driver knows
	Decoder string `json:"decoder"` // version
	Hashes  string `json:"library_sha256"`
	Binary  string `json:"binary_sha256"`
}

type qualifiedLibrary struct {
	Role    string `json:"role"`
	File    string `json:"file"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256"`
}

// differences are the parts that two of them do not share, in words.
func (k *qualifiedFor) differences(other *qualifiedFor) (list []string) {
	for _, c := range []struct{ what, here, there string }{
		{"GPU", k.Name + " at " + k.PCI, other.Name + " at " + other.PCI}, {"architecture", k.Arch, other.Arch},
		{"driver", k.Driver, other.Driver}, {"kernel driver", k.Kernel, other.Kernel}, {"API", k.API, other.API}, {"decoder", k.Decoder, other.Decoder},
	} {
		if c.here != c.there {
			list = append(list, fmt.Sprintf("%s %s, not %s", c.what, c.there, c.here))
		}
	}
	if k.Hashes != other.Hashes {
		list = append(list, "other files of the libraries")
	}
	if k.Binary != other.Binary {
		list = append(list, "another microtome")
	}
	return list
}

// qualifiedLibraries hashes the files that were opened, and those that came with them:
// a decoder may be a thin layer over others. hashes are all of them.
func qualifiedLibraries(s *gpu.Survey) (list []qualifiedLibrary, hashes string, err error) {
	named := map[string]bool{}
	for _, l := range s.Libraries {
		if l.File == "" {
			continue
		}
		list = append(list, qualifiedLibrary{Role: l.Role, File: l.File, Version: l.Version})
		if real, err := filepath.EvalSymlinks(l.File); err == nil {
			named[real] = true
		}
	}
	for _, file := range s.Loaded {
		if !named[file] {
			list = append(list, qualifiedLibrary{Role: "beside", File: file})
		}
	}
	all := sha256.New()
	for i := range list {
		l := &list[i]
		if l.SHA256, err = fileHash(l.File); err != nil {
			return nil, "", err
		}
		fmt.Fprintf(all, "%s %s\n", l.Role, l.SHA256)
	}
	return list, hex.EncodeToString(all.Sum(nil)), nil
}

// qualifiedForOf is what a pass of a device must be for.
func qualifiedForOf(s *gpu.Survey, i int) (k qualifiedFor, list []qualifiedLibrary, err error) {
	if i >= len(s.Devices) {
		return k, nil, fmt.Errorf("there is no device %d: the driver has %d", i, len(s.Devices))
	}
	d := &s.Devices[i]
	k = qualifiedFor{Vendor: d.Vendor, Name: d.Name, PCI: d.PCI, Arch: d.Arch, API: d.Driver, Decoder: d.Decoder, Kernel: kernelDriver(os.DirFS("/"), d.Vendor)}
	for _, l := range s.Libraries {
		if l.Role == "driver" {
			k.Driver = l.Version
		}
	}
	if list, k.Hashes, err = qualifiedLibraries(s); err != nil {
		return k, nil, err
	}
	self, err := os.Executable()
	if err == nil {
		k.Binary, err = fileHash(self)
	}
	return k, list, err
}

// kernelDriver is the version of the vendor's kernel module; a module of Linux's own
// has Linux's.
func kernelDriver(root fs.FS, vendor string) string {
	module := map[string]string{"nvidia": "nvidia", "amd": "amdgpu"}[vendor]
	for _, file := range []string{"sys/module/" + module + "/version", "proc/sys/kernel/osrelease"} {
		if text, err := fs.ReadFile(root, file); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	return "unknown"
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// buildCommit is the commit that the binary was built of, where it knows.
func buildCommit() string {
	commit, changed := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = ", changed"
			}
		}
	}
	return commit + changed
}

// qualifications is the folder where passes are kept: a file for each of what they
// are for.
type qualifications string

func qualificationDir(dir string) qualifications {
	return qualifications(cmp.Or(dir, filepath.Join(cacheDir(), "qualifications")))
}

func (dir qualifications) file(k *qualifiedFor) string {
	text, _ := json.Marshal(k) // strings alone
	sum := sha256.Sum256(text)
	return filepath.Join(string(dir), k.Vendor+"-"+hex.EncodeToString(sum[:8])+".json")
}

// keep writes what came of a battery, a failure too: it takes an earlier pass's place.
func (dir qualifications) keep(q *qualification) (file string, err error) {
	text, err := json.MarshalIndent(q, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(string(dir), ".qualification-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) // nothing once it is renamed
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", err
	}
	file = dir.file(&q.For)
	return file, os.Rename(f.Name(), file)
}

// why says why a device may not be used: there is no pass for exactly this.
func (dir qualifications) why(k *qualifiedFor) string {
	q, err := readQualification(dir.file(k))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dir.nearest(k)
	case err != nil:
		return "its qualification can't be read: " + err.Error()
	case q.For != *k || q.Battery != qualify.Battery:
		return "its qualification is for something else"
	case !q.Passed:
		return "it failed the qualification" + q.failure()
	}
	return ""
}

// failure names the step that failed first.
func (q *qualification) failure() string {
	r := qualify.Result{Steps: q.Steps}
	if s := r.First(); s != nil {
		return " at " + s.Name + ": " + strings.ReplaceAll(s.Reason, "\n", "; ")
	}
	return ""
}

// nearest says what the passes that are there are for instead.
func (dir qualifications) nearest(k *qualifiedFor) string {
	files, _ := filepath.Glob(filepath.Join(string(dir), k.Vendor+"-*.json"))
	slices.Sort(files)
	var least []string
	for _, file := range files {
		q, err := readQualification(file)
		if err != nil || !q.Passed {
			continue
		}
		if d := k.differences(&q.For); len(d) > 0 && (least == nil || len(d) < len(least)) {
			least = d
		}
	}
	if least == nil {
		return "there is no pass in " + string(dir)
	}
	return "the pass in " + string(dir) + " is for " + strings.Join(least, ", for ")
}

func readQualification(file string) (*qualification, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	q := new(qualification)
	return q, json.Unmarshal(text, q)
}
