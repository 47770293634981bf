package bench

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// The chart's measures, in pixels.
const (
	chartWidth = 860
	labelWidth = 330
	barHeight  = 18
	barGap     = 6
	titleSpace = 34
)

// Chart writes the report as bars, a group for each task, in SVG.
func (r *Report) Chart(w io.Writer) error {
	var b strings.Builder
	y := titleSpace
	for _, task := range r.tasks() {
		y = r.group(&b, task, y)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">
<style>text{fill:#222}.t{font-weight:bold}.o{fill:#2a7}.p{fill:#89a}.l{fill:#c94}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>
<text x="8" y="20" class="t">%s on %s, %d cores</text>
%s</svg>
`, chartWidth, y+barGap, html.EscapeString(r.Slide.Name), html.EscapeString(r.Machine.CPU), r.Machine.Cores, b.String())
	return err
}

// tasks are those of the rows, in order.
func (r *Report) tasks() (all []string) {
	for _, x := range r.Rows {
		if !slices.Contains(all, x.Task) {
			all = append(all, x.Task)
		}
	}
	return all
}

// group draws a task's bars below y and returns where it ends.
func (r *Report) group(b *strings.Builder, task string, y int) int {
	most := 0.0
	for _, x := range r.Rows {
		if x.Task == task {
			most = max(most, x.Median)
		}
	}
	fmt.Fprintf(b, `<text x="8" y="%d" class="t">%s</text>`+"\n", y+14, html.EscapeString(task))
	y += 22
	for _, x := range r.Rows {
		if x.Task != task || x.Median == 0 {
			continue
		}
		class := "p"
		switch {
		case strings.HasPrefix(x.Engine, "microtome"):
			class = "o"
		case x.Engine == Limit || x.Engine == StaticLimit:
			class = "l"
		}
		name := fmt.Sprintf("%s, %d callers, %s cores", x.Engine, x.Callers, cores(x.Cores))
		if x.Callers == 1 {
			name = fmt.Sprintf("%s, 1 caller, %s cores", x.Engine, cores(x.Cores))
		}
		width := x.Median / most * (chartWidth - labelWidth - 130)
		value := fmt.Sprintf("%.0f %s", x.Median, x.Unit)
		if x.Ratio > 0 {
			value += fmt.Sprintf(" (%.1f)", x.Ratio)
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" class="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
			labelWidth-8, y+13, html.EscapeString(name), labelWidth, y, width, barHeight, class, labelWidth+width+6, y+13, html.EscapeString(value))
		y += barHeight + barGap
	}
	return y + 8
}
