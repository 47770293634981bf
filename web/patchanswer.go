package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/web/patchwire"
)

// maxFailures bounds Microtome-Failures, below what clients take of a header.
const maxFailures = 4 << 10

// writeRaw writes header, statuses and pixels.
func (b *batch) writeRaw(x *exchange) error {
	if err := b.all(); err != nil {
		return err
	}
	failed := patchwire.Failed(b.status)
	x.set("Microtome-Failed", strconv.Itoa(failed))
	x.Header()["Content-Type"] = contentTypes[microtome.FormatRaw]
	x.set("Content-Length", strconv.FormatInt(b.shape.RawBytes(), 10))
	return b.write(x, patchwire.AppendStatuses(patchwire.AppendHead(nil, b.shape, failed, false), b.status))
}

// streamRaw writes header and pixels as they are made, then the statuses.
func (b *batch) streamRaw(x *exchange) error {
	x.Header()["Content-Type"] = contentTypes[microtome.FormatRaw]
	x.set("Content-Length", strconv.FormatInt(b.shape.RawBytes(), 10))
	if err := b.write(x, patchwire.AppendHead(nil, b.shape, -1, true)); err != nil || x.err != nil {
		return err
	}
	_, x.err = x.Write(patchwire.AppendStatuses(nil, b.status))
	return nil
}

// writeNPY writes the array alone. Which items failed stands in the header.
func (b *batch) writeNPY(x *exchange) error {
	if err := b.all(); err != nil {
		return err
	}
	x.set("Microtome-Failed", strconv.Itoa(patchwire.Failed(b.status)))
	if failures := patchwire.Failures(b.status, maxFailures); failures != "" {
		x.set("Microtome-Failures", failures)
	}
	head := patchwire.AppendNPY(nil, b.shape)
	x.Header()["Content-Type"] = contentTypes[microtome.FormatNPY]
	x.set("Content-Length", strconv.FormatInt(int64(len(head))+int64(b.shape.N)*b.shape.ItemBytes(), 10))
	return b.write(x, head)
}

// streamNPY writes the array as its items are made, and in the trailer which of
// them failed.
func (b *batch) streamNPY(x *exchange) error {
	h := x.Header()
	h["Content-Type"] = contentTypes[microtome.FormatNPY]
	h["Trailer"] = []string{"Microtome-Failed, Microtome-Failures"}
	err := b.write(x, patchwire.AppendNPY(nil, b.shape))
	h["Microtome-Failed"] = []string{strconv.Itoa(patchwire.Failed(b.status))}
	h["Microtome-Failures"] = []string{patchwire.Failures(b.status, maxFailures)}
	return err
}

func wantsTrailers(r *http.Request) bool {
	for _, line := range r.Header["Te"] {
		for part := range strings.SplitSeq(line, ",") {
			if name, _, _ := strings.Cut(part, ";"); strings.EqualFold(strings.TrimSpace(name), "trailers") {
				return true
			}
		}
	}
	return false
}

// write writes the array behind its head, item by item. Once the head is out an
// error can only be told by breaking off.
func (b *batch) write(x *exchange, head []byte) error {
	x.WriteHeader(http.StatusOK)
	if _, x.err = x.Write(head); x.err == nil {
		x.err = b.writeItems(x)
	}
	b.breakOff(x)
	return nil
}

// breakOff ends an answer that can't be finished though the client is there, so
// that it doesn't take what it got for the whole.
func (b *batch) breakOff(x *exchange) {
	if b.broken != nil && b.asker.Err() == nil {
		panic(http.ErrAbortHandler)
	}
}

// copies are buffers that items go through when they can't be written as they
// lie in memory: 256x256x3 fits.
var copies = sync.Pool{New: func() any { return new([256 << 10]byte) }}

func (b *batch) writeItems(w io.Writer) error {
	buf := copies.Get().(*[256 << 10]byte)
	defer copies.Put(buf)
	for i := range b.results {
		if b.broken = b.await(i); b.broken != nil {
			return b.broken
		}
		if err := b.writeItem(w, buf[:], i); err != nil {
			return err
		}
		b.written(i)
	}
	return nil
}

func (b *batch) writeItem(w io.Writer, buf []byte, i int) error {
	px, s := b.results[i].Pixels, b.shape
	if px == nil {
		return patchwire.WriteFill(w, buf, s)
	}
	pix, stride, ok := px.Host()
	if !ok || px.Width() != s.Width || px.Height() != s.Height || px.Channels() != s.Channels {
		b.broken = fmt.Errorf("item %d: %dx%dx%d pixels for %dx%dx%d", i, px.Width(), px.Height(), px.Channels(), s.Width, s.Height, s.Channels)
		return b.broken
	}
	return patchwire.WriteItem(w, buf, pix, stride, s)
}

// itemJSON is the status of an item.
type itemJSON struct {
	Index   int    `json:"index"`
	Status  int    `json:"status"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Made    string `json:"made,omitempty"`
	Engine  string `json:"engine,omitempty"`
	Cache   string `json:"cache,omitempty"`
	Level   *int   `json:"level,omitempty"`
}

func (b *batch) item(i int) itemJSON {
	st := &b.status[i]
	if st.Code != http.StatusOK {
		return itemJSON{Index: i, Status: st.Code, Code: b.failed[i].code, Message: b.failed[i].message}
	}
	cache := "miss"
	if st.Hit {
		cache = "hit"
	}
	return itemJSON{Index: i, Status: st.Code, Made: madeNames[st.Made], Engine: engineNames[st.Engine], Cache: cache, Level: &st.Level}
}

// streamParts writes the array as its items are made and, as a second part, all
// statuses.
func (b *batch) streamParts(x *exchange) error {
	m := multipart.NewWriter(x)
	x.set("Content-Type", "multipart/mixed; boundary="+m.Boundary())
	x.WriteHeader(http.StatusOK)
	head := patchwire.AppendNPY(nil, b.shape)
	size := int64(len(head)) + int64(b.shape.N)*b.shape.ItemBytes()
	x.err = writePart(m, contentTypes[microtome.FormatNPY][0], size, nil, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		return b.writeItems(w)
	})
	if x.err == nil {
		x.err = b.writeStatuses(m)
	}
	b.breakOff(x)
	return nil
}

// writeStatuses writes the second part of npy, and ends the body.
func (b *batch) writeStatuses(m *multipart.Writer) error {
	all := make([]itemJSON, len(b.status))
	for i := range all {
		all[i] = b.item(i)
	}
	text, err := json.Marshal(map[string]any{"statuses": all})
	if err != nil {
		return err
	}
	if err := writePart(m, "application/json", int64(len(text)), nil, whole(text)); err != nil {
		return err
	}
	return m.Close()
}

// writePictures writes each item as a part: its picture, or why there is none.
func (s *server) writePictures(x *exchange, b *batch) error {
	if err := b.all(); err != nil {
		return err
	}
	made := s.pictures(b)
	if err := b.ctx.Err(); err != nil {
		return err
	}
	x.set("Microtome-Failed", strconv.Itoa(patchwire.Failed(b.status)))
	m := multipart.NewWriter(x)
	x.set("Content-Type", "multipart/mixed; boundary="+m.Boundary())
	x.WriteHeader(http.StatusOK)
	for i := range made {
		kind, body := contentTypes[formatOf(b.q.Format)][0], made[i]
		if b.status[i].Code != http.StatusOK {
			var err error
			if body, err = json.Marshal(b.item(i)); err != nil {
				return err
			}
			kind = "application/json"
		}
		head := textproto.MIMEHeader{"Microtome-Status": {strconv.Itoa(b.status[i].Code)}}
		if st := &b.status[i]; st.Code == http.StatusOK {
			head["Microtome-Tile"] = madeHeaders[st.Made][st.Engine][cacheOf(st.Hit)]
		}
		if x.err = writePart(m, kind, int64(len(body)), head, whole(body)); x.err != nil {
			return nil // the client went away
		}
	}
	x.err = m.Close()
	return nil
}

func whole(body []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := bytes.NewReader(body).WriteTo(w)
		return err
	}
}

// writePart writes one part of a multipart body.
func writePart(m *multipart.Writer, kind string, size int64, head textproto.MIMEHeader, body func(io.Writer) error) error {
	if head == nil {
		head = textproto.MIMEHeader{}
	}
	head.Set("Content-Type", kind)
	head.Set("Content-Length", strconv.FormatInt(size, 10))
	w, err := m.CreatePart(head)
	if err != nil {
		return err
	}
	return body(w)
}
