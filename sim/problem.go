package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a World, a script or a Webhook.
type Problem struct {
	// Path is where, in the words of a scenario: rate, limits[1].routes[0],
	// cases.alpha.steps.
	Path string
	// Line and Column are the place within a script, counted from 1; a column
	// is a character. 0: it is not in one.
	Line, Column int
	// Message says what is wrong, Remedy what to write instead.
	Message, Remedy string
	// Served tells that it may be due to which packs are served.
	Served bool
}

// String tells it in one line.
func (p Problem) String() string {
	text := p.Message
	if p.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, text)
	}
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Remedy != "" {
		text += "; " + p.Remedy
	}
	return text
}

// under puts all problems at a path.
func under(path string, all []Problem) []Problem {
	for i := range all {
		switch p := &all[i]; p.Path {
		case "":
			p.Path = path
		default:
			p.Path = path + "." + p.Path
		}
	}
	return all
}

// Error is everything that is wrong with a World, a script or a Webhook, at
// least one thing. Nothing of it was taken.
type Error struct{ Problems []Problem }

// Error implements error: a line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "sim: " + strings.Join(lines, "\n")
}

// failed is an error of these problems, nil if there are none.
func failed(all []Problem) error {
	if len(all) == 0 {
		return nil
	}
	return &Error{all}
}

// nearest are the few of known that have the most in common with word, the
// most alike first: as a remedy, or as much as a person reads.
func nearest(word string, known []string) []string {
	const few = 3
	type candidate struct {
		text  string
		alike float64
	}
	parts := pairs(word)
	var all []candidate
	for _, k := range known {
		if alike := parts.alike(pairs(k)); alike > 0.2 && !slices.ContainsFunc(all, func(c candidate) bool { return c.text == k }) {
			all = append(all, candidate{k, alike})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		switch {
		case a.alike > b.alike:
			return -1
		case a.alike < b.alike:
			return 1
		}
		return 0
	})
	var some []string
	for _, c := range all[:min(few, len(all))] {
		some = append(some, c.text)
	}
	return some
}

// suggest says what is like word among known, or else how many there are and
// where to read them all.
func suggest(word string, known []string, where string) string {
	if near := nearest(word, known); near != nil {
		return "did you mean " + strings.Join(near, ", or ") + "? " + where
	}
	return where
}

// letters are the pairs of neighbours in a text, and how often each is there.
type letters map[[2]byte]int

func pairs(text string) letters {
	const most = 200 // of a name; what is longer is like nothing
	text = " " + strings.ToLower(text[:min(len(text), most)]) + " "
	all := letters{}
	for i := range len(text) - 1 {
		all[[2]byte{text[i], text[i+1]}]++
	}
	return all
}

// alike is the part of all pairs that both have (Dice's coefficient).
func (l letters) alike(o letters) float64 {
	both, all := 0, 0
	for p, n := range l {
		both += min(n, o[p])
		all += n
	}
	for _, n := range o {
		all += n
	}
	return 2 * float64(both) / float64(all)
}
