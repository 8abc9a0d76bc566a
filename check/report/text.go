package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedproject/heed/check"
)

// Terminal says how a scorecard is shown.
type Terminal struct {
	Width int // of a line; 0 means 100
	Color bool
	// All shows what passed or does not apply too.
	All bool
	// Command: the client is a command template, which claims by what it has in it.
	Command bool
}

// paint are the colours of the marks, as ECMA-48 has them.
var paint = map[check.Mark]string{check.Pass: "32", check.Fail: "31", check.NA: "90", check.Unknown: "33"}

func (t Terminal) paint(code, text string) string {
	if !t.Color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Text writes the scorecard: the grade of each group, then each case that did
// not pass with its cause.
func Text(w io.Writer, r *check.Report, t Terminal) error {
	if t.Width <= 0 {
		t.Width = 100
	}
	b := bufio.NewWriter(w)
	name := strings.TrimSpace(r.Client.Name + " " + r.Client.Version)
	fmt.Fprintf(b, "%s  %s  (%s in %s, seed %d)\n\n", t.paint("1", name), t.paint(gradePaint(r.Grade)+";1", r.Told()),
		plural(len(r.Results), "case"), r.Took.Round(100*time.Millisecond), r.Seed)
	for _, g := range r.Groups {
		t.group(b, g)
	}
	if thin := func(g check.Grade) bool { return g.Thin }; r.Thin || slices.ContainsFunc(r.Groups, thin) {
		t.note(b, "~ rests on less than half of what applies: the rest is unknown")
	}
	for _, n := range r.Notes {
		t.note(b, "note: "+n)
	}
	for _, one := range r.Results {
		if t.All || one.Mark == check.Fail || one.Mark == check.Unknown {
			t.result(b, one)
		}
	}
	if text := t.unclaimed(r.Results); text != "" {
		b.WriteByte('\n')
		t.note(b, text)
	}
	b.WriteByte('\n')
	return b.Flush()
}

// group writes one line: name, grade, a bar and the counts.
func (t Terminal) group(b *bufio.Writer, g check.Grade) {
	const bar = 20
	full := int(g.Score*bar + 0.5)
	counted := g.Passed + g.Failed
	line := strings.Repeat("█", full) + strings.Repeat("░", bar-full)
	if counted == 0 {
		line = strings.Repeat(" ", bar)
	}
	fmt.Fprintf(b, "  %-12s %s ", g.Group, t.paint(gradePaint(g.Grade), fmt.Sprintf("%-3s", g.Told())))
	if t.Width >= 60 {
		fmt.Fprintf(b, "%s ", t.paint(gradePaint(g.Grade), line))
	}
	fmt.Fprintf(b, "%d of %d", g.Passed, counted)
	if g.Unknown > 0 {
		fmt.Fprintf(b, ", %d unknown", g.Unknown)
	}
	if g.NA > 0 {
		b.WriteString(t.paint("90", fmt.Sprintf(", %d n/a", g.NA)))
	}
	b.WriteByte('\n')
}

// note writes a sentence that stands below the grades.
func (t Terminal) note(b *bufio.Writer, text string) {
	for _, line := range wrap(text, t.Width-2) {
		fmt.Fprintf(b, "  %s\n", t.paint("90", line))
	}
}

// result writes a case: what happened, why it is judged so, which rule says so.
func (t Terminal) result(b *bufio.Writer, one check.Result) {
	mark := fmt.Sprintf("%-7s", one.Mark)
	known := ""
	if one.Known {
		known = " (known)"
	}
	fmt.Fprintf(b, "\n%s %s%s\n", t.paint(paint[one.Mark], mark), one.ID, known)
	for _, text := range []string{one.Title, one.Cause, "rule: " + one.Rule.String()} {
		code := ""
		if strings.HasPrefix(text, "rule: ") {
			code = "90"
		}
		for _, line := range wrap(text, t.Width-8) {
			fmt.Fprintf(b, "        %s\n", t.paint(code, line))
		}
	}
}

func gradePaint(grade string) string {
	switch grade {
	case "A+", "A":
		return "32"
	case "B", "C":
		return "33"
	case "-":
		return "90"
	}
	return "31"
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) []string {
	width = max(width, 20)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
