package classify

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/hint"
)

// Wait is where a rule reads how long to wait: the first of its sources that
// says something counts, with Longest the longest of them. Where none says
// anything, the Floor of the last one counts. The zero Wait says nothing.
type Wait struct {
	Source
	// Or are the sources after the first one.
	Or []Source
	// Longest reads all sources.
	Longest bool
}

// Source is one place where a wait stands; one of the first seven is set.
//
// What cannot be read, is negative, is listed in Ignore or lies beyond Ceiling
// is not said, and the next source is asked: a wait is never shortened, and
// never made of garbage. Zero and the past give Floor, which may be nothing.
type Source struct {
	Header   string         // all lines of a header; the longest valid one counts
	Path     Selector       // a value of the JSON body, the first that can be read
	XML      *XMLValue      // a value of the XML body
	Text     *regexp.Regexp // the first group, in the first bytes of the body
	Calc     *Calc          // a formula over values of the JSON body; seconds, or the unit of Format
	Calendar *Calendar      // the next turn of a day, an hour or a month
	Const    time.Duration  // nothing is read

	// Format is how the first four, and the unit in which Calc is written.
	Format hint.Format
	// Key picks a member of a key_value list.
	Key string
	// Vars are the values that Calc computes with.
	Vars map[string]Selector

	// Ignore lists texts that mean nothing, such as -1.
	Ignore []string
	// Floor is the least this source gives.
	Floor time.Duration
	// Ceiling is the most that is believed. 0: everything is.
	Ceiling time.Duration
	// Add is put on top: a server that opens at a full second opens within it.
	Add time.Duration
	// SkipZero takes zero and the past for not said.
	SkipZero bool
	// Local measures instants against our own clock, not the server's Date.
	Local bool
}

// XMLValue is the text of the first element with a local name, or an
// attribute of the first such element that has it.
type XMLValue struct{ Name, Attr string }

// Calendar is when a quota comes back that is counted by the clock on a wall.
type Calendar struct {
	Every Period
	// In is the zone of the wall. nil: not known; then every full hour may be
	// the turn of the day, and is waited for.
	In *time.Location
}

// Period is what a Calendar counts by.
type Period string

// The periods.
const (
	Hourly  Period = "hour"
	Daily   Period = "day"
	Monthly Period = "month"
)

// next is the first turn after t.
func (c *Calendar) next(t time.Time) time.Time {
	in := c.In
	if in == nil {
		in = time.UTC
	}
	t = t.In(in)
	switch {
	case c.In == nil || c.Every == Hourly:
		return nextHour(t)
	case c.Every == Monthly:
		return dayBegins(t.Year(), t.Month()+1, 1, in)
	}
	return dayBegins(t.Year(), t.Month(), t.Day()+1, in)
}

// nextHour counts on from t, because where the clock on the wall is put
// forward the next full hour may have no reading of its own. Where it is put
// back by half an hour, the same hour may come twice in a row.
func nextHour(t time.Time) time.Time {
	next := t
	for range 2 {
		spent := time.Duration(next.Minute())*time.Minute + time.Duration(next.Second())*time.Second + time.Duration(next.Nanosecond())
		if next = next.Add(time.Hour - spent); next.Minute() == 0 || next.Hour() != t.Hour() {
			break
		}
	}
	return next
}

// dayBegins is the first instant of a day. Some zones put the clock forward at
// midnight, so that the day begins at one, and Samoa once left a day out:
// time.Date then gives an instant of the day before.
func dayBegins(year int, month time.Month, day int, in *time.Location) time.Time {
	begin := time.Date(year, month, day, 0, 0, 0, 0, in)
	if plain := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); begin.Day() != plain.Day() {
		if _, end := begin.ZoneBounds(); !end.IsZero() {
			return end
		}
	}
	return begin
}

// named tells whether the source names a place.
func (s *Source) named() bool {
	return s.Header != "" || s.Path != nil || s.XML != nil || s.Text != nil || s.Calc != nil || s.Calendar != nil || s.Const != 0
}

// inBody tells whether the body has to be read for it.
func (s *Source) inBody() bool {
	return s.Path != nil || s.XML != nil || s.Text != nil || s.Calc != nil
}

// sources are all that w names, in their order.
func (w *Wait) sources() []*Source {
	if !w.named() {
		return nil
	}
	all := []*Source{&w.Source}
	for i := range w.Or {
		all = append(all, &w.Or[i])
	}
	return all
}

// inBody tells whether the body has to be read.
func (w *Wait) inBody() bool {
	for _, s := range w.sources() {
		if s.inBody() {
			return true
		}
	}
	return false
}

// read finds the wait; from is the source that gave it, nil where none did.
func (w *Wait) read(l *look) (wait time.Duration, from *Source) {
	all := w.sources()
	for _, s := range all {
		d, said := s.read(l)
		if !said || from != nil && d <= wait {
			continue
		}
		if wait, from = d, s; !w.Longest {
			break
		}
	}
	if from == nil && len(all) > 0 {
		return all[len(all)-1].Floor, nil
	}
	return wait, from
}

// read finds what the source says.
func (s *Source) read(l *look) (wait time.Duration, said bool) {
	if wait, said = s.raw(l); !said || wait < 0 {
		return 0, false
	}
	switch {
	case wait == 0 && s.SkipZero, s.Ceiling > 0 && wait > s.Ceiling:
		return 0, false
	case wait > 0:
		wait += s.Add
	}
	return max(wait, s.Floor), true
}

func (s *Source) raw(l *look) (wait time.Duration, said bool) {
	now := l.x.Now
	if !s.Local {
		now = serverNow(l.x)
	}
	switch {
	case s.Const > 0:
		return s.Const, true
	case s.Calendar != nil:
		return s.Calendar.next(now).Sub(now), true
	case s.Header != "":
		return s.lines(l.x.Header[s.Header], now)
	case !l.seen():
		return 0, false
	case s.Calc != nil:
		return s.compute(l)
	}
	for _, text := range s.texts(l) {
		if wait, said = s.lines([]string{text}, now); said {
			return wait, true
		}
	}
	return 0, false
}

// lines reads the longest valid one.
func (s *Source) lines(all []string, now time.Time) (wait time.Duration, said bool) {
	var good []string
	for _, text := range all {
		text = strings.TrimSpace(text)
		if s.ignores(text) {
			continue
		}
		if s.Key != "" {
			if text = hint.Member(text, s.Key); text == "" {
				continue
			}
		}
		good = append(good, text)
	}
	format := s.Format
	if s.Key != "" {
		format = hint.RetryAfter
	}
	wait, _, said = hint.ParseWait(format, good, now)
	return wait, said
}

func (s *Source) ignores(text string) bool { return slices.Contains(s.Ignore, text) }

// texts are the values of the body that the source points at.
func (s *Source) texts(l *look) []string {
	switch {
	case s.Path != nil:
		doc, _, ok := l.document()
		if !ok {
			return nil
		}
		var all []string
		for _, v := range s.Path.Select(doc) {
			all = append(all, written(v))
		}
		return all
	case s.XML != nil:
		return l.xmlTexts(s.XML)
	}
	if m := s.Text.FindSubmatch(l.text()); m != nil {
		return []string{string(m[1])}
	}
	return nil
}

// compute evaluates the formula. A value that is missing, or is no number,
// leaves nothing to compute.
func (s *Source) compute(l *look) (wait time.Duration, said bool) {
	doc, _, ok := l.document()
	if !ok {
		return 0, false
	}
	n, ok := s.Calc.Eval(func(name string) (float64, bool) {
		path := s.Vars[name]
		if path == nil {
			return 0, false
		}
		for _, v := range path.Select(doc) {
			if f, ok := numeric(v); ok {
				return f, true
			}
		}
		return 0, false
	})
	if !ok {
		return 0, false
	}
	if s.Format == hint.Millis {
		n /= 1000
	}
	switch {
	case n <= 0:
		return 0, true // it may go on at once
	case n >= hint.MaxWait.Seconds():
		return hint.MaxWait, true
	}
	return time.Duration(n * float64(time.Second)).Round(time.Millisecond), true
}

// serverNow is the instant by the server's own clock, if that is less than a
// day from ours, so that a date in the body means what the server meant.
func serverNow(x *Exchange) time.Time {
	t, ok := hint.ParseDate(first(x.Header, "Date"), x.Now)
	if ok && t.Sub(x.Now).Abs() < 24*time.Hour {
		return t
	}
	return x.Now
}
