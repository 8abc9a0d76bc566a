package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// grid is rows of cells; the first row is the head.
type grid [][]string

// columns is how a table is laid out.
type columns struct {
	Width int
	// Wrap are the columns that share what the others leave, and break lines;
	// the last one gets twice as much.
	Wrap []int
	// Indent stands before every line.
	Indent string
}

const (
	usual     = 100     // the width of a screen that nobody knows
	boundless = 1 << 20 // that of what no person looks at
)

// width is that of the screen.
func (sh *shell) width() int { return cmp.Or(sh.screen(), usual) }

// screen is the width of the terminal, or what COLUMNS says; 0: there is none.
func (sh *shell) screen() int {
	if text, ok := sh.getenv("COLUMNS"); ok {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			return n
		}
	}
	if f, ok := sh.out.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// least is the narrowest that a wrapped column becomes.
const least = 12

// write lays the table out.
func (t grid) write(out io.Writer, c columns) error {
	widths := t.widths(c)
	var b strings.Builder
	for _, row := range t {
		cells := make([][]string, len(row))
		lines := 1
		for i, cell := range row {
			cells[i] = wrapped(cell, widths[i])
			lines = max(lines, len(cells[i]))
		}
		for n := range lines {
			var line strings.Builder
			line.WriteString(c.Indent)
			for i := range row {
				cell := ""
				if n < len(cells[i]) {
					cell = cells[i][n]
				}
				line.WriteString(cell + strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0)+2))
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// widths gives each column what it needs, and to those that wrap what is left.
func (t grid) widths(c columns) []int {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	left := c.Width - len(c.Indent)
	for i, w := range widths {
		if !slices.Contains(c.Wrap, i) {
			left -= w
		}
		left -= 2
	}
	for n, i := range c.Wrap {
		share := left
		if n < len(c.Wrap)-1 {
			share = left / (len(c.Wrap) - n + 1)
		}
		share = max(share, least)
		widths[i] = min(widths[i], share)
		left -= widths[i]
	}
	return widths
}

// wrapped breaks text at blanks; a word that is too long is broken too.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			head := broken(word, width)
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// broken is the beginning of a long word: to the last sign between its parts,
// if there is one in the second half.
func broken(word string, width int) string {
	head := string([]rune(word)[:width])
	if at := strings.LastIndexAny(head, "/-._,"); at >= len(head)/2 {
		return head[:at+1]
	}
	return head
}

// pairs writes names and what belongs to them, one below the other.
func (sh *shell) pairs(rows [][2]string) error {
	longest := 0
	for _, r := range rows {
		longest = max(longest, len(r[0]))
	}
	for _, r := range rows {
		for i, line := range wrapped(r[1], max(sh.width()-longest-2, least)) {
			name := r[0]
			if i > 0 {
				name = ""
			}
			if _, err := fmt.Fprintf(sh.out, "%-*s  %s\n", longest, name, line); err != nil {
				return err
			}
		}
	}
	return nil
}
