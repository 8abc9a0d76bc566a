package provider

import (
	"errors"
	"strings"
	"time"

	"github.com/heedproject/heed/provider/sheet"
)

// Grade says how well something is known.
type Grade string

// The grades, the best first.
const (
	Documented Grade = "documented" // the provider's own documentation
	Seen       Grade = "seen"       // source code or test data of a server, client or SDK
	Reported   Grade = "reported"   // issues, articles, scripts
	General    Grade = "general"    // general knowledge, not looked up
	Unverified Grade = "unverified" // a single weak hint
)

// Doubtful tells that nobody has looked it up.
func (g Grade) Doubtful() bool { return g == General || g == Unverified }

// Fact is where something is known from.
type Fact struct {
	// Origin names the document, or the code, for people.
	Origin string
	Grade  Grade
	// Checked is the day on which somebody looked last, as 2026-11-30. Optional.
	Checked string
}

func grades(g *Grade) sheet.Value {
	return sheet.OneOf(g, Documented, Seen, Reported, General, Unverified)
}

func (f *Fact) fields() []sheet.Field {
	return []sheet.Field{
		{Name: "source", Doc: "Where this is known from.", Value: sheet.Text(&f.Origin)},
		{Name: "grade", Doc: "How well it is known.", Value: grades(&f.Grade)},
		{Name: "checked", Doc: "The day on which somebody looked last, such as 2026-11-30.", Value: day(&f.Checked)},
	}
}

func day(p *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if _, err := time.Parse(time.DateOnly, text); err != nil {
				return errors.New("this is not a day")
			}
			*p = text
			return nil
		},
		Show:    func() (string, bool) { return *p, *p != "" },
		Remedy:  "write it as in 2026-11-30",
		Pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
		Example: "2026-11-30",
	}
}

// Known is one fact of a profile.
type Known struct {
	// Block is where it stands, such as rules or paging.
	Block string
	// About is the id of a rule, the name of a header, or what kind it is.
	About string
	// Says is what is so, in one line.
	Says string
	// Used tells that heed acts on it; what is not used is only told.
	Used bool
	// From is the profile that says so: its own name, or one that it extends.
	From string
	Fact

	path string // where it stands in the document
}

// says is what a block holds, in one line, less where it is known from.
func says(v sheet.Value, less ...string) string {
	n := v.Write()
	if n == nil {
		return ""
	}
	skip := map[string]bool{"source": true, "grade": true, "checked": true}
	for _, name := range less {
		skip[name] = true
	}
	var parts []string
	for _, m := range n.Members {
		if text := line(m.Value); text != "" && !skip[m.Key.Text] {
			parts = append(parts, m.Key.Text+" "+text)
		}
	}
	return strings.Join(parts, ", ")
}

// line is n in one line.
func line(n *sheet.Node) string {
	switch n.Kind {
	case sheet.Scalar:
		return strings.Join(strings.Fields(n.Text), " ")
	case sheet.Sequence:
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			parts[i] = line(item)
		}
		if len(parts) == 1 {
			return parts[0]
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	parts := make([]string, len(n.Members))
	for i, m := range n.Members {
		parts[i] = m.Key.Text + " " + line(m.Value)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
