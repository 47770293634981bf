package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/qualify"
)

// qualifyReport is what --qualify prints.
type qualifyReport struct {
	Passed  bool             `json:"passed"`
	Reason  string           `json:"reason,omitempty"` // why not
	Devices []*qualification `json:"devices"`
	files   []string         // where each is kept
}

// runQualify puts devices to the proof, and keeps what came of it. It fails unless all
// that were asked for pass; with auto, the first of each vendor that has one.
func (f *doctorFlags) runQualify(cmd *cobra.Command, d device) error {
	worker, err := gpuWorker()
	if err != nil {
		return err
	}
	r := qualifyReport{Devices: []*qualification{}}
	var none []string
	for _, v := range gpuVendors() {
		if d.kind != "auto" && d.kind != v.name {
			continue
		}
		e := examination{gpuVendor: v, flags: f, worker: worker, indexes: d.indexes, onBus: -1}
		why, err := e.qualify(cmd.Context(), &r)
		if err != nil {
			return err
		}
		if why != "" {
			none = append(none, why)
		}
	}
	r.conclude(none, d.kind == "auto")
	if f.json {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.print(cmd.OutOrStdout())
	}
	if err == nil && !r.Passed {
		err = errors.New(r.Reason)
	}
	return err
}

// qualify takes a vendor's devices. It returns why none could be.
func (e *examination) qualify(ctx context.Context, r *qualifyReport) (why string, err error) {
	look, cancel := context.WithTimeout(ctx, e.flags.timeout)
	s := gpu.Look(look, e.worker, nil, e.name, e.flags.libraries)
	cancel()
	if s.Trouble != nil {
		return e.trouble(s.Trouble, &s, nil), nil
	}
	indexes := e.indexes
	if len(indexes) == 0 {
		indexes = []int{0}
	}
	for _, i := range indexes {
		if i >= len(s.Devices) {
			return fmt.Sprintf("%s:%d: there is no such device: the driver has %d", e.name, i, len(s.Devices)), nil
		}
		if t := s.Devices[i].Trouble; t != nil {
			return fmt.Sprintf("%s:%d: %s", e.name, i, e.trouble(t, &s, &s.Devices[i])), nil
		}
		q, err := e.battery(ctx, &s, i)
		if err != nil {
			return "", err
		}
		file, err := qualificationDir(e.flags.qualificationDir).keep(q)
		if err != nil {
			return "", fmt.Errorf("the qualification can't be kept: %w", err)
		}
		r.Devices, r.files = append(r.Devices, q), append(r.files, file)
	}
	return "", nil
}

// battery runs a device's.
func (e *examination) battery(ctx context.Context, s *gpu.Survey, i int) (*qualification, error) {
	k, libraries, err := qualifiedForOf(s, i)
	if err != nil {
		return nil, err
	}
	cpu := decode.NewCPU(decode.Options{})
	result := qualify.Run(ctx, qualify.Options{Engine: gpu.Options{
		Vendor: e.name, Index: i, Libraries: e.flags.libraries, CPU: cpu, Worker: e.worker, Start: e.flags.timeout,
	}})
	if err := errors.Join(cpu.Close(), ctx.Err()); err != nil {
		return nil, err // given up: an earlier pass stays
	}
	q := &qualification{
		Battery: qualify.Battery, Device: fmt.Sprintf("%s:%d", e.name, i), Passed: result.Passed() && cpu.Exact(), Build: versionText(), Commit: buildCommit(),
		For: k, Libraries: libraries, Steps: result.Steps, NotClaimed: qualify.NotClaimedAtAll(),
	}
	if l := doctorLimitsOf(result.Limits); l != nil {
		q.Samplings = l.Samplings
	}
	return q, nil
}

// conclude says whether all passed. Of auto a vendor may have none.
func (r *qualifyReport) conclude(none []string, auto bool) {
	r.Passed = len(r.Devices) > 0 && (auto || len(none) == 0)
	var why []string
	for _, q := range r.Devices {
		if !q.Passed {
			r.Passed = false
			why = append(why, q.Device+" is not qualified: it failed"+q.failure())
		}
	}
	if !r.Passed {
		r.Reason = strings.Join(append(why, none...), "; ")
	}
}

// print writes the report for a reader.
func (r *qualifyReport) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i, q := range r.Devices {
		q.print(t)
		fmt.Fprintf(t, "  kept in\t%s\n", r.files[i])
	}
	return t.Flush()
}

func (q *qualification) print(t io.Writer) {
	verdict := "passed: serve may use it"
	if !q.Passed {
		verdict = "failed" + q.failure()
	}
	k := &q.For
	fmt.Fprintf(t, "%s\n  qualification\t%s\n", q.Device, verdict)
	fmt.Fprintf(t, "  name\t%s at %s, %s\n", k.Name, k.PCI, k.Arch)
	fmt.Fprintf(t, "  driver\t%s, kernel %s, %s; %s\n", k.Driver, k.Kernel, k.API, k.Decoder)
	for _, l := range q.Libraries {
		fmt.Fprintf(t, "  %s\t%s\n  \tsha256 %s\n", l.Role, l.File, l.SHA256)
	}
	fmt.Fprintf(t, "  build\t%s, commit %s\n  \tsha256 %s\n", q.Build, q.Commit, k.Binary)
	for _, s := range q.Steps {
		line := string(s.Verdict)
		if s.Reason != "" {
			line += ": " + strings.ReplaceAll(s.Reason, "\n", "; ")
		}
		fmt.Fprintf(t, "  %s\t%s\n", s.Name, line)
	}
	for i, n := range q.NotClaimed {
		head := ""
		if i == 0 {
			head = "not claimed"
		}
		fmt.Fprintf(t, "  %s\t%s\n", head, n)
	}
}
