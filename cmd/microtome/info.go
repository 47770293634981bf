package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
)

const infoLong = `Say what a slide is: its format, levels, associated images, scale and what its
tiles are; or, with exit code 1, why it is not opened, by tag and value.`

func newInfoCmd() *cobra.Command {
	var asJSON, properties bool
	cmd := &cobra.Command{
		Use:   "info SLIDE",
		Short: "Say what a slide is, or why it is not opened",
		Long:  infoLong,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			slide, err := openSlide(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, slide.Close()) }()
			facts, err := slideFacts(cmd.Context(), slide)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(facts)
			}
			return printInfo(cmd.OutOrStdout(), facts, properties)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, properties included")
	cmd.Flags().BoolVar(&properties, "properties", false, "list OpenSlide's properties too")
	return cmd
}

// infoFacts is what info tells of a slide, in the shape of its JSON.
type infoFacts struct {
	Format         string            `json:"format"`
	Bytes          int64             `json:"bytes"`
	Levels         []infoImage       `json:"levels"`
	Associated     []infoImage       `json:"associated"`
	MPP            *infoMPP          `json:"mpp"`
	ObjectivePower *float64          `json:"objective_power"`
	ICCBytes       int64             `json:"icc_bytes"`
	Planes         infoPlanes        `json:"planes"`
	Bounds         []int             `json:"bounds,omitempty"` // x, y, width, height
	Decoder        infoDecoder       `json:"decoder"`
	ContentID      string            `json:"content_id"`
	Properties     map[string]string `json:"properties"`
	Warnings       []string          `json:"warnings"`
}

type infoImage struct {
	Name       string  `json:"name,omitempty"`
	Width      int64   `json:"width"`
	Height     int64   `json:"height"`
	Downsample float64 `json:"downsample,omitempty"`
	TileWidth  int     `json:"tile_width"`
	TileHeight int     `json:"tile_height"`
	Cols       int     `json:"cols"`
	Rows       int     `json:"rows"`
	Codec      string  `json:"codec"`
	Color      string  `json:"color"`
	Samples    int     `json:"samples"`
	Stream     string  `json:"stream,omitempty"` // of its first stored tile
	ICCBytes   int64   `json:"icc_bytes,omitempty"`
}

type infoMPP struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

type infoPlanes struct {
	C        int           `json:"c"`
	Z        int           `json:"z"`
	T        int           `json:"t"`
	Channels []infoChannel `json:"channels,omitempty"`
}

type infoChannel struct {
	Name  string `json:"name"`
	Color string `json:"color,omitempty"` // #rrggbb
}

type infoDecoder struct {
	Name  string `json:"name"`
	Exact bool   `json:"exact"` // equal to libjpeg-turbo, bit for bit
}

// slideFacts gathers what is told. It reads one tile of each image.
func slideFacts(ctx context.Context, s microtome.Slide) (*infoFacts, error) {
	info := s.Info()
	f := &infoFacts{
		Format: info.Format, Bytes: info.Generation.Size, ObjectivePower: info.ObjectivePower,
		ICCBytes: info.ICCBytes, Associated: []infoImage{}, Warnings: append([]string{}, info.Warnings...),
		Planes: infoPlanes{C: info.Planes.C, Z: info.Planes.Z, T: info.Planes.T},
	}
	if info.MPP != nil {
		f.MPP = &infoMPP{X: info.MPP.X, Y: info.MPP.Y}
	}
	for _, c := range info.Planes.Channels {
		channel := infoChannel{Name: c.Name}
		if c.Color != nil {
			channel.Color = fmt.Sprintf("#%02x%02x%02x", c.Color.R, c.Color.G, c.Color.B)
		}
		f.Planes.Channels = append(f.Planes.Channels, channel)
	}
	if b := info.Bounds; b != nil {
		f.Bounds = []int{b.Min.X, b.Min.Y, b.Dx(), b.Dy()}
	}
	for i, level := range info.Levels {
		image := infoImageOf(level.Grid)
		image.Downsample = level.Downsample
		image.Stream = firstStream(level.Grid, func(col, row int) (microtome.Tile, error) {
			return s.ReadTile(ctx, i, 0, col, row)
		})
		f.Levels = append(f.Levels, image)
	}
	for _, a := range info.Associated {
		image := infoImageOf(a.Grid)
		image.Name, image.ICCBytes = a.Name, a.ICCBytes
		image.Stream = firstStream(a.Grid, func(col, row int) (microtome.Tile, error) {
			return s.ReadAssociated(ctx, a.Name, col, row)
		})
		f.Associated = append(f.Associated, image)
	}
	var err error
	if f.Decoder, err = decoderFacts(); err != nil {
		return nil, err
	}
	if f.Properties, err = s.Properties(ctx); err != nil {
		return nil, err
	}
	f.ContentID, err = s.ContentID(ctx)
	return f, err
}

func infoImageOf(g microtome.Grid) infoImage {
	return infoImage{
		Width: g.Width, Height: g.Height, TileWidth: g.TileWidth, TileHeight: g.TileHeight,
		Cols: g.Cols, Rows: g.Rows, Codec: codecName(g.Codec), Color: colorName(g.Color), Samples: g.Samples,
	}
}

func decoderFacts() (infoDecoder, error) {
	cpu := decode.NewCPU(decode.Options{})
	return infoDecoder{Name: cpu.Name(), Exact: cpu.Exact()}, cpu.Close()
}

func codecName(c microtome.Codec) string {
	return map[microtome.Codec]string{
		microtome.CodecNone: "uncompressed", microtome.CodecJPEG: "JPEG", microtome.CodecJPEG2000: "JPEG 2000",
		microtome.CodecDeflate: "Deflate", microtome.CodecLZW: "LZW", microtome.CodecPackBits: "PackBits",
		microtome.CodecZstd: "zstd",
	}[c]
}

func colorName(c microtome.Color) string {
	return map[microtome.Color]string{
		microtome.ColorGray: "gray", microtome.ColorGrayWhite: "gray (0 is white)", microtome.ColorRGB: "RGB",
		microtome.ColorYCbCr: "YCbCr", microtome.ColorPalette: "palette",
	}[c]
}

// firstStream says what an image's stream is by one stored tile of it: the one
// in the middle, or the first of some where that is empty.
func firstStream(g microtome.Grid, read func(col, row int) (microtome.Tile, error)) string {
	const tries = 64
	cells := int64(g.Cols) * int64(g.Rows)
	at := int64(g.Rows/2)*int64(g.Cols) + int64(g.Cols/2)
	for range min(cells, tries) {
		tile, err := read(int(at%int64(g.Cols)), int(at/int64(g.Cols)))
		switch {
		case errors.Is(err, microtome.ErrEmptyTile):
			at = (at + max(1, cells/tries)) % cells
		case err != nil:
			return "unreadable: " + err.Error()
		default:
			return streamText(tile)
		}
	}
	return "no tile stored"
}

func streamText(t microtome.Tile) string {
	if t.Codec != microtome.CodecJPEG {
		return fmt.Sprintf("%d bytes a tile, predictor %d", len(t.Data), max(t.Predictor, 1))
	}
	h, err := jpegstream.Parse(t.Data)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	return h.Describe()
}

// printInfo writes the facts for a reader.
func printInfo(w io.Writer, f *infoFacts, properties bool) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "format\t%s\n", f.Format)
	fmt.Fprintf(t, "size\t%d x %d\n", f.Levels[0].Width, f.Levels[0].Height)
	fmt.Fprintf(t, "microns per pixel\t%s\n", mppText(f.MPP))
	fmt.Fprintf(t, "objective power\t%s\n", powerText(f.ObjectivePower))
	fmt.Fprintf(t, "ICC profile\t%s\n", bytesText(f.ICCBytes))
	fmt.Fprintf(t, "planes\t%s\n", planesText(f.Planes))
	if len(f.Bounds) == 4 {
		fmt.Fprintf(t, "stored tiles\t%d x %d at %d, %d\n", f.Bounds[2], f.Bounds[3], f.Bounds[0], f.Bounds[1])
	}
	for i, level := range f.Levels {
		fmt.Fprintf(t, "level %d\t%s\n", i, imageText(level))
	}
	for _, a := range f.Associated {
		fmt.Fprintf(t, "%s\t%s\n", a.Name, imageText(a))
	}
	exact := "exact: equal to libjpeg-turbo"
	if !f.Decoder.Exact {
		exact = "not exact: built without libjpeg-turbo"
	}
	fmt.Fprintf(t, "decoder\t%s (%s)\n", f.Decoder.Name, exact)
	fmt.Fprintf(t, "content id\t%s\n", f.ContentID)
	for _, warning := range f.Warnings {
		fmt.Fprintf(t, "warning\t%s\n", warning)
	}
	if properties {
		for _, key := range slices.Sorted(maps.Keys(f.Properties)) {
			fmt.Fprintf(t, "%s\t%q\n", key, f.Properties[key])
		}
	}
	return t.Flush()
}

func mppText(m *infoMPP) string {
	if m == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.6g x %.6g", m.X, m.Y)
}

func powerText(p *float64) string {
	if p == nil {
		return "unknown"
	}
	return fmt.Sprintf("%g", *p)
}

func bytesText(n int64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d bytes", n)
}

func planesText(p infoPlanes) string {
	if p.C == 1 && p.Z == 1 && p.T == 1 {
		return "one"
	}
	text := fmt.Sprintf("channels %d, focal planes %d, time points %d", p.C, p.Z, p.T)
	var names []string
	for _, c := range p.Channels {
		names = append(names, strings.TrimSpace(c.Name+" "+c.Color))
	}
	if len(names) > 0 {
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return text
}

func imageText(i infoImage) string {
	text := fmt.Sprintf("%d x %d, ", i.Width, i.Height)
	if i.Downsample > 0 {
		text += fmt.Sprintf("1/%.6g, ", i.Downsample)
	}
	text += fmt.Sprintf("%d x %d cells of %dx%d, %s %s", i.Cols, i.Rows, i.TileWidth, i.TileHeight, i.Codec, i.Color)
	if i.Stream != "" {
		text += ": " + i.Stream
	}
	return text
}
