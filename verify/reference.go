package verify

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

//go:embed openslide_child.py
var childScript string

// WantedVersion is the only OpenSlide that is taken as the reference: other
// versions paint other pixels, and libvips brings 3.4.1 into a process.
const WantedVersion = "4.0.1"

// reference is OpenSlide in a child process. Its calls are made one at a time.
type reference struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err *strings.Builder

	Version     string
	Levels      [][2]int64
	Downsamples []float64
	Properties  map[string]string
	Associated  []string
}

// request is one line to the child; answer the head of what it says.
type request struct {
	Op     string `json:"op"`
	Level  int    `json:"level"`
	X      int64  `json:"x"`
	Y      int64  `json:"y"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Name   string `json:"name"`
}

type answer struct {
	Error       string            `json:"error"`
	Bytes       int64             `json:"bytes"`
	Version     string            `json:"version"`
	Levels      [][2]int64        `json:"levels"`
	Downsamples []float64         `json:"downsamples"`
	Properties  map[string]string `json:"properties"`
	Associated  []string          `json:"associated"`
	Width       int               `json:"width"`
	Height      int               `json:"height"`
}

// maxBody bounds what one answer of the child may hold.
const maxBody = 1 << 31

// startReference opens the slide in a Python that has openslide-python and
// openslide-bin, and refuses any version but WantedVersion.
func startReference(ctx context.Context, python, path string) (*reference, error) {
	r := &reference{cmd: exec.CommandContext(ctx, python, "-I", "-c", childScript, path), err: &strings.Builder{}}
	r.cmd.Stderr = r.err
	in, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (give a Python with openslide-python and openslide-bin by --python): %w", python, err)
	}
	r.in, r.out = in, bufio.NewReaderSize(out, 1<<20)
	head, _, err := r.ask(request{Op: "hello"})
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	if head.Version != WantedVersion {
		return nil, errors.Join(fmt.Errorf("the reference must be OpenSlide %s, this is %q", WantedVersion, head.Version), r.close())
	}
	r.Version, r.Levels, r.Downsamples = head.Version, head.Levels, head.Downsamples
	r.Properties, r.Associated = head.Properties, head.Associated
	return r, nil
}

// ask sends one request and reads its answer.
func (r *reference) ask(q request) (answer, []byte, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return answer{}, nil, err
	}
	// A child that failed to open the slide has said why before it left, so a
	// broken pipe here is not the news.
	_, writeErr := r.in.Write(append(line, '\n'))
	text, err := r.out.ReadBytes('\n')
	if err != nil {
		return answer{}, nil, fmt.Errorf("the OpenSlide child ended: %w: %s", errors.Join(err, writeErr), lastLine(r.err.String()))
	}
	var head answer
	if err := json.Unmarshal(text, &head); err != nil {
		return answer{}, nil, fmt.Errorf("the OpenSlide child said %.80q: %w", text, err)
	}
	if head.Error != "" {
		return answer{}, nil, fmt.Errorf("OpenSlide: %s", head.Error)
	}
	if head.Bytes < 0 || head.Bytes > maxBody {
		return answer{}, nil, fmt.Errorf("the OpenSlide child announced %d bytes", head.Bytes)
	}
	body := make([]byte, head.Bytes)
	if _, err := io.ReadFull(r.out, body); err != nil {
		return answer{}, nil, fmt.Errorf("the OpenSlide child's pixels: %w", err)
	}
	return head, body, nil
}

func (r *reference) close() error {
	r.in.Close()
	io.Copy(io.Discard, r.out)
	return r.cmd.Wait()
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
