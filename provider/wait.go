package provider

import (
	"errors"
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // a calendar names zones, and a container may have none

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/provider/sheet"
)

// waitValue is one source of a wait, or a list of them.
type waitValue struct{ p *classify.Wait }

// Read implements sheet.Value.
func (w waitValue) Read(r *sheet.Reader, n *sheet.Node, path string) {
	longest := w.p.Longest
	if n.Kind != sheet.Sequence {
		*w.p = classify.Wait{Longest: longest}
		sourceFields(&w.p.Source).Read(r, n, path)
		return
	}
	var all []classify.Source
	sheet.List(&all, func(s *classify.Source) sheet.Value { return sourceFields(s) }).Read(r, n, path)
	if len(all) == 0 {
		r.Problem(n, path, "write at least one, such as {header: Retry-After-Ms, format: ms}", "the list is empty")
		return
	}
	*w.p = classify.Wait{Source: all[0], Or: all[1:], Longest: longest}
}

// Write implements sheet.Value.
func (w waitValue) Write() *sheet.Node {
	if len(w.p.Or) == 0 {
		return sourceFields(&w.p.Source).Write()
	}
	all := append([]classify.Source{w.p.Source}, w.p.Or...)
	return sheet.List(&all, func(s *classify.Source) sheet.Value { return sourceFields(s) }).Write()
}

// Schema implements sheet.Value.
func (w waitValue) Schema() map[string]any {
	one := sourceFields(new(classify.Source)).Schema()
	return map[string]any{"oneOf": []any{one, map[string]any{"type": "array", "items": one}}}
}

// sourceFields is the table of one place where a wait stands.
func sourceFields(s *classify.Source) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "header", Doc: "A header; of several lines the longest valid one counts.", Value: Header(&s.Header)},
		{Name: "json", Doc: "A JSON path; the first value that can be read counts.", Value: Path(&s.Path)},
		{Name: "xml", Doc: "An element by its local name: its text, or an attribute.", Value: optionalXML{&s.XML}},
		{Name: "text", Doc: "A regular expression whose first group is the wait.", Value: pattern(&s.Text)},
		{Name: "calc", Doc: "A formula of + - * / min max over vars, in seconds.", Value: calc(&s.Calc)},
		{Name: "vars", Doc: "The numbers of the formula, each by its JSON path.",
			Value: sheet.Map[classify.Selector]{P: &s.Vars, One: Path, Name: varName, Pattern: "^[A-Za-z][A-Za-z0-9_]*$"}},
		{Name: "calendar", Doc: "The next turn of a calendar.", Value: optionalCalendar{&s.Calendar}},
		{Name: "const", Doc: "A wait that nobody tells.", Value: sheet.If(s.Const != 0, sheet.DurationZero(&s.Const, sheet.Refused))},
		{Name: "format", Doc: "How it is written; for calc s or ms.", Value: formats(&s.Format)},
		{Name: "key", Doc: "The member of a key_value list.", Value: sheet.Text(&s.Key)},
		{Name: "ignore", Doc: "Values that mean nothing, such as -1.", Value: sheet.Texts(&s.Ignore)},
		{Name: "floor", Doc: "The least that is waited. Of the last source also where none says anything.",
			Value: sheet.If(s.Floor != 0, sheet.Duration(&s.Floor))},
		{Name: "ceiling", Doc: "The most that is believed; beyond it the next source counts.",
			Value: sheet.If(s.Ceiling != 0, sheet.DurationZero(&s.Ceiling, sheet.Refused))},
		{Name: "add", Doc: "What is put on top, for servers that open late.", Value: sheet.If(s.Add != 0, sheet.Duration(&s.Add))},
		{Name: "zero", Doc: "What zero and the past mean: floor, or skip to the next source. Default floor.",
			Value: sheet.If(s.SkipZero, sheet.Switch(&s.SkipZero, "floor", "skip"))},
		{Name: "clock", Doc: "Which clock instants are measured against: the Date of the answer, or ours. Default server.",
			Value: sheet.If(s.Local, sheet.Switch(&s.Local, "server", "local"))},
	}, Check: func(m sheet.Read) { checkSource(m, s) }}
}

// places are the keys that say where a wait stands.
var places = []string{"header", "json", "xml", "text", "calc", "calendar", "const"}

func checkSource(m sheet.Read, s *classify.Source) {
	var found []string
	for _, name := range places {
		if m.Has(name) {
			found = append(found, name)
		}
	}
	const remedy = "give one of header, json, xml, text, calc, calendar and const"
	switch {
	case len(found) == 0:
		m.Bad("", remedy, "it is not said where the wait stands")
	case len(found) > 1:
		m.Bad(found[0], remedy, "the wait stands here or under %s, which is not clear", found[1])
	case slices.Contains(places[:4], found[0]) && !m.Has("format"):
		m.Bad("format", "say how the wait is written, such as s or iso8601", "format is missing")
	}
	if s.Text != nil && s.Text.NumSubexp() == 0 {
		m.Bad("text", "put parentheses around the wait", "the expression has no group")
	}
}

func varName(name string) error {
	c, err := classify.ParseCalc(name)
	if err != nil || len(c.Names()) != 1 || c.Names()[0] != name {
		return errors.New("the name of a number has letters, digits and _, and begins with a letter")
	}
	return nil
}

func calc(c **classify.Calc) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) (err error) {
			parsed, err := classify.ParseCalc(text)
			if err == nil {
				*c = parsed
			}
			return err
		},
		Show: func() (string, bool) {
			if *c == nil {
				return "", false
			}
			return (*c).String(), true
		},
		Remedy:  "write a formula over vars, such as (requested - available) / rate",
		Example: "(requested - available) / rate",
		Numeric: true,
	}
}

// optionalXML is a value of the XML body: a name alone, or with an attribute.
type optionalXML struct{ p **classify.XMLValue }

func (o optionalXML) short(v *classify.XMLValue) sheet.Short {
	name := sheet.Text(&v.Name)
	return sheet.Short{Value: name, Long: sheet.Block{Fields: []sheet.Field{
		{Name: "name", Doc: "The local name of the element.", Required: true, Value: name},
		{Name: "attr", Doc: "The local name of an attribute. Nothing: the text.", Value: sheet.Text(&v.Attr)},
	}}}
}

// Read implements sheet.Value.
func (o optionalXML) Read(r *sheet.Reader, n *sheet.Node, path string) {
	v := new(classify.XMLValue)
	o.short(v).Read(r, n, path)
	*o.p = v
}

// Write implements sheet.Value.
func (o optionalXML) Write() *sheet.Node {
	if *o.p == nil {
		return nil
	}
	return o.short(*o.p).Write()
}

// Schema implements sheet.Value.
func (o optionalXML) Schema() map[string]any { return o.short(new(classify.XMLValue)).Schema() }

// optionalCalendar is a calendar that need not be there.
type optionalCalendar struct{ p **classify.Calendar }

func (o optionalCalendar) fields(c *classify.Calendar) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "every", Doc: "What it counts by.", Required: true, Value: sheet.OneOf(&c.Every, classify.Hourly, classify.Daily, classify.Monthly)},
		{Name: "zone", Doc: "The time zone of the provider, such as America/Los_Angeles. Default unknown: every full hour may be the turn.",
			Value: zone(&c.In)},
	}}
}

// Read implements sheet.Value.
func (o optionalCalendar) Read(r *sheet.Reader, n *sheet.Node, path string) {
	c := new(classify.Calendar)
	o.fields(c).Read(r, n, path)
	*o.p = c
}

// Write implements sheet.Value.
func (o optionalCalendar) Write() *sheet.Node {
	if *o.p == nil {
		return nil
	}
	return o.fields(*o.p).Write()
}

// Schema implements sheet.Value.
func (o optionalCalendar) Schema() map[string]any { return o.fields(new(classify.Calendar)).Schema() }

func zone(in **time.Location) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if text == "unknown" {
				*in = nil
				return nil
			}
			l, err := time.LoadLocation(text)
			if err != nil || text == "Local" || text == "" {
				return fmt.Errorf("%.40q is not a time zone", text)
			}
			*in = l
			return nil
		},
		Show: func() (string, bool) {
			if *in == nil {
				return "unknown", true
			}
			return (*in).String(), true
		},
		Remedy:  "write a name of the IANA list, such as UTC or America/Los_Angeles, or unknown",
		Example: "America/Los_Angeles",
	}
}

func formats(f *hint.Format) sheet.Value {
	return sheet.OneOf(f, hint.Seconds, hint.Millis, hint.EpochSeconds, hint.EpochMillis, hint.ISO8601, hint.HTTPDate,
		hint.GoDuration, hint.ProtoDuration, hint.RetryAfter, hint.Number, hint.UsedTotal, hint.KeyValue, hint.Structured)
}
