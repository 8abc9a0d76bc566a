package main

import (
	"fmt"
	"html"
	"strings"
)

// The picture is a line for each client and a cell for each group, in pixels.
const (
	nameWidth  = 230
	cellWidth  = 46
	cellHeight = 26
	headHeight = 92
	gap        = 2
)

// shades are the colours from the worst to the best; none of them is the only
// bearer of what it says, as the number stands in the cell.
var shades = []struct {
	least      int
	fill, text string
}{{100, "#1a7f5a", "#fff"}, {93, "#5fb58e", "#000"}, {80, "#b5dcb0", "#000"}, {65, "#f3e3a1", "#000"}, {50, "#f0b878", "#000"}, {0, "#d9705f", "#000"}}

// picture is the board with the best settings as SVG.
func (b *board) picture() string {
	rows := b.ranked(best)
	var w strings.Builder
	if len(rows) == 0 {
		return ""
	}
	groups := rows[0].Groups
	width, height := nameWidth+(len(groups)+1)*cellWidth+40, headHeight+len(rows)*cellHeight+10
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12">`,
		width, height, width, height)
	fmt.Fprintf(&w, "\n<title>How clients fare in heed check, with the best settings</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height)
	label(&w, 0, "all")
	for i, g := range groups {
		label(&w, i+1, g.Group)
	}
	for i, r := range rows {
		y := headHeight + i*cellHeight
		fmt.Fprintf(&w, `<text x="%d" y="%d" text-anchor="end" fill="#222">%s</text>`+"\n", nameWidth-10, y+17, html.EscapeString(r.Client))
		cell(&w, 0, y, r.Grade, r.Score)
		for j, g := range r.Groups {
			cell(&w, j+1, y, g.Grade, g.Score)
		}
	}
	w.WriteString("</svg>\n")
	return w.String()
}

// label is the name of a column, aslant.
func label(w *strings.Builder, column int, name string) {
	x, y := nameWidth+column*cellWidth+cellWidth/2, headHeight-8
	fmt.Fprintf(w, `<text transform="translate(%d %d) rotate(-45)" fill="#222">%s</text>`+"\n", x, y, html.EscapeString(name))
}

// cell is one score; grey is nothing to grade.
func cell(w *strings.Builder, column, y int, grade string, score float64) {
	fill, ink, text := "#eceff1", "#78909c", "–"
	if grade != "-" {
		p := percent(score)
		for _, s := range shades {
			if p >= s.least {
				fill, ink, text = s.fill, s.text, fmt.Sprint(p)
				break
			}
		}
	}
	x := nameWidth + column*cellWidth
	fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="%s"/><text x="%d" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n",
		x, y, cellWidth-gap, cellHeight-gap, fill, x+(cellWidth-gap)/2, y+17, ink, text)
}
