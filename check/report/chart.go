package report

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/check"
)

const (
	chartWidth = 860
	laneLeft   = 120
	laneHigh   = 18
	laneRight  = 40 // half of the last tick stands there
	mostLanes  = 60
)

// timeline draws the requests of a case: a lane for each operation, a bar for
// each request from its arrival to the end of its answer.
func timeline(one check.Result) template.HTML {
	lanes := lanesOf(one.Timeline)
	if len(lanes) == 0 {
		return ""
	}
	var end time.Duration
	for _, e := range one.Timeline {
		end = max(end, e.At+e.Took)
	}
	end = max(end, 100*time.Millisecond)
	x := func(d time.Duration) float64 {
		return laneLeft + float64(d)/float64(end)*(chartWidth-laneLeft-laneRight)
	}
	high := len(lanes)*laneHigh + 26
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="when each request came">`, chartWidth, high)
	for i := range 6 { // five parts of the time
		at := end * time.Duration(i) / 5
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="0" y2="%d"/><text class="tick" x="%.1f" y="%d">%s</text>`,
			x(at), x(at), high-20, x(at), high-6, tick(at, end))
	}
	for i, name := range lanes {
		fmt.Fprintf(&b, `<text class="lane" x="%d" y="%d">%s</text>`, laneLeft-8, i*laneHigh+13, html.EscapeString(short(name)))
	}
	for _, e := range one.Timeline {
		i := slices.Index(lanes, e.Operation)
		if i < 0 {
			continue
		}
		wide := max(x(e.At+e.Took)-x(e.At), 4)
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="12" rx="2"><title>%s</title></rect>`,
			tone(e), x(e.At), i*laneHigh+3, wide, html.EscapeString(told(e)))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // of numbers and of text that is escaped
}

// tick is an instant of an axis that ends at end, exact enough to tell it from
// its neighbours.
func tick(at, end time.Duration) string {
	if end < 2*time.Second {
		return fmt.Sprintf("%d ms", at.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", at.Seconds())
}

// lanesOf are the operations in the order in which they first came.
func lanesOf(events []check.Event) []string {
	var lanes []string
	for _, e := range events {
		if !slices.Contains(lanes, e.Operation) && len(lanes) < mostLanes {
			lanes = append(lanes, e.Operation)
		}
	}
	return lanes
}

func short(name string) string {
	if len(name) > 16 {
		return name[:15] + "…"
	}
	return name
}

// tone is the class of a request's bar: by what it got.
func tone(e check.Event) string {
	switch {
	case e.Elsewhere:
		return "away"
	case e.Status == 0:
		return "none"
	case e.Status == 429:
		return "slow"
	case e.Status >= 500:
		return "bad"
	case e.Status >= 400:
		return "no"
	}
	return "good"
}

// told is what the bar of a request says when it is pointed at.
func told(e check.Event) string {
	text := fmt.Sprintf("%s, request %d: %s at %.3f s", e.Operation, e.Number, e.Method, e.At.Seconds())
	if e.Number > 1 {
		text += fmt.Sprintf(", %.3f s after the answer before", e.Gap.Seconds())
	}
	switch {
	case e.Status == 0:
		text += "; no answer"
	default:
		text += fmt.Sprintf("; answered %d", e.Status)
	}
	if e.Step != "" {
		text += " (" + e.Step + ")"
	}
	if e.Elsewhere {
		text += ", by the other host"
	}
	return text
}
