package classify

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// New compiles rules, which are tried in order. It lists everything that is
// wrong with them at once; then there is no Classifier. The rules are not
// changed and not kept.
func New(rules []Rule) (*Classifier, []policy.Problem) {
	c := &Classifier{tags: map[string]bool{}}
	var ps problems
	for i, r := range rules {
		ps.at = fmt.Sprintf("rules[%d]", i)
		if r.ID == "" {
			r.ID = ps.at
		}
		if r.Override.Header != "" {
			ps.override(&r)
			c.obey(r)
			continue
		}
		ps.rule(&r)
		c.add(r)
	}
	if len(ps.all) > 0 {
		return nil, ps.all
	}
	return c, nil
}

// add compiles r, which may be wrong; then nobody sees the outcome.
func (c *Classifier) add(r Rule) {
	w := &r.When
	w.Methods = each(w.Methods, strings.ToUpper)
	w.Asked = each(w.Asked, essenceOf)
	w.Media = each(w.Media, essenceOf)
	w.NotMedia = each(w.NotMedia, essenceOf)
	w.Header = slices.Clone(w.Header)
	for i := range w.Header {
		w.Header[i].Name = http.CanonicalHeaderKey(w.Header[i].Name)
	}
	if w.XML != nil {
		for _, name := range w.XML.Names {
			c.tags[name] = true
		}
	}
	r.Wait.Or = slices.Clone(r.Wait.Or)
	for _, s := range r.Wait.sources() {
		s.Header = http.CanonicalHeaderKey(s.Header)
		if s.XML != nil {
			c.tags[s.XML.Name] = true
		}
	}
	out := rule{Rule: r, kinds: anyKind, waits: r.Wait.named()}
	out.whole = slices.ContainsFunc(w.JSON, func(m JSONMatch) bool { return m.Absent })
	out.inBody = len(w.JSON) > 0 || w.XML != nil || w.Text != nil || w.Body != BodyAny
	switch {
	case w.Body == BodyHTML || w.Body == BodyEmpty:
		out.peek = sniff
	case out.inBody:
		out.peek = policy.PeekLimit
	}
	if len(w.JSON) > 0 || w.XML != nil || w.Text != nil || r.Wait.inBody() {
		out.peek = policy.PeekLimit
	}
	if len(w.Media)+len(w.NotMedia) == 0 {
		out.kinds = implied(w)
	}
	c.peeks = c.peeks || out.peek > 0
	c.rules = append(c.rules, out)
}

func each(in []string, f func(string) string) []string {
	out := slices.Clone(in)
	for i := range out {
		out[i] = f(out[i])
	}
	return out
}

// implied is what bodies a rule can read that names no media type. An empty
// body is empty whatever its type.
func implied(w *Match) kind {
	k := anyKind
	if len(w.JSON) > 0 {
		k &= kindJSON | kindLines | kindPlain | kindNone
	}
	if w.XML != nil {
		k &= kindXML | kindPlain | kindNone
	}
	if w.Text != nil || w.Body == BodyHTML {
		k &= anyText
	}
	if w.Body == BodyMalformed {
		k &= kindJSON | kindLines | kindXML
	}
	return k
}

// problems collects what is wrong with the rule at.
type problems struct {
	at  string
	all []policy.Problem
}

func (ps *problems) add(field, remedy, format string, args ...any) {
	ps.all = append(ps.all, policy.Problem{Path: ps.at + field, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (ps *problems) rule(r *Rule) {
	ps.head(&r.When)
	ps.body(&r.When)
	ps.then(r.Then)
	ps.wait(&r.Wait)
}

func (ps *problems) head(w *Match) {
	if w.everything() {
		ps.add(".when", "name at least one condition", "the rule holds for every answer")
	}
	for i, s := range w.Statuses {
		if s.From < 100 || s.To > 999 || s.From > s.To {
			ps.add(fmt.Sprintf(".when.statuses[%d]", i), "give one from 100 to 999, or a range such as 500-599",
				"%d-%d is no range of status codes", s.From, s.To)
		}
	}
	for i, f := range w.Failures {
		if f > OtherFailure {
			ps.add(fmt.Sprintf(".when.failures[%d]", i), "use one of "+strings.Join(failures[1:], ", "), "%d is not known", f)
		}
	}
	for i, m := range w.Methods {
		if m == "" || strings.ContainsAny(m, " \t,*") {
			ps.add(fmt.Sprintf(".when.methods[%d]", i), "write it as in GET", "%q is not a method", m)
		}
	}
	for i, glob := range w.Paths {
		if !strings.HasPrefix(glob, "/") && !strings.HasPrefix(glob, "*") {
			ps.add(fmt.Sprintf(".when.paths[%d]", i), "begin it with /", "%q is not a path", glob)
		}
	}
	ps.media("asked", w.Asked)
	ps.media("media", w.Media)
	ps.media("not_media", w.NotMedia)
	for i, h := range w.Header {
		if h.Name == "" || strings.ContainsAny(h.Name, " \t:,") {
			ps.add(fmt.Sprintf(".when.header[%d].name", i), "write it as in Retry-After", "%q is not the name of a header", h.Name)
		}
	}
}

func (w *Match) everything() bool {
	return len(w.Methods)+len(w.Paths)+len(w.Asked)+len(w.Statuses)+len(w.Failures)+len(w.Media)+len(w.NotMedia)+
		len(w.Header)+len(w.JSON) == 0 && w.XML == nil && w.Text == nil && w.Body == BodyAny
}

func (ps *problems) media(field string, types []string) {
	for i, m := range types {
		if major, minor, ok := strings.Cut(essenceOf(m), "/"); !ok || major == "" || minor == "" || strings.Contains(minor, "/") {
			ps.add(fmt.Sprintf(".when.%s[%d]", field, i), "write it as in application/json, image/* or */*+xml", "%q is not a media type", m)
		}
	}
}

func (ps *problems) body(w *Match) {
	for i, j := range w.JSON {
		at := fmt.Sprintf(".when.json[%d]", i)
		if j.Path == nil {
			ps.add(at+".path", "give a JSON path such as $.error.code", "the condition has no path")
		}
		if j.Absent && j.Value != nil {
			ps.add(at, "give either value or absent", "what is absent has no value")
		}
	}
	if x := w.XML; x != nil {
		if len(x.Names) == 0 {
			ps.add(".when.xml.names", "list local names such as ServiceException", "the condition has no names")
		}
		for i, n := range x.Names {
			if n == "" || strings.ContainsAny(n, ": <>") {
				ps.add(fmt.Sprintf(".when.xml.names[%d]", i), "leave the prefix out", "%q is not a local name", n)
			}
		}
	}
	switch w.Body {
	case BodyAny, BodyMalformed, BodyHTML:
	case BodyEmpty:
		if len(w.JSON) > 0 || w.XML != nil || w.Text != nil {
			ps.add(".when.body", "use two rules", "an empty body contains nothing, so the rule never holds")
		}
	default:
		ps.add(".when.body", "use one of empty, malformed, html", "%q is not known", string(w.Body))
	}
}

func (ps *problems) then(v Verdict) {
	if v.Class > Truncated {
		ps.add(".then.class", "use one of the classes", "%d is not known", v.Class)
	}
	if v.Executed > Yes {
		ps.add(".then.executed", "use one of no, maybe, yes", "%d is not known", v.Executed)
	}
	if v.Retry > Revalidate {
		ps.add(".then.retry", "use one of the ways to retry", "%d is not known", v.Retry)
	}
	if v.Scope > ScopeHost {
		ps.add(".then.scope", "use one of call, key, host", "%d is not known", v.Scope)
	}
	if v.Wait < 0 {
		ps.add(".then.wait", "give a duration of zero or more", "%v is negative", v.Wait)
	}
}

// times are the formats that tell of a time.
var times = []hint.Format{hint.Seconds, hint.Millis, hint.EpochSeconds, hint.EpochMillis, hint.ISO8601,
	hint.HTTPDate, hint.GoDuration, hint.ProtoDuration, hint.RetryAfter, hint.KeyValue}

func (ps *problems) wait(w *Wait) {
	all := w.sources()
	switch {
	case all == nil && (len(w.Or) > 0 || w.Longest || w.Format != "" || w.Floor != 0 || w.Ceiling != 0 || w.Add != 0):
		ps.add(".wait", "say where it stands: header, json, xml, text, calc, calendar or const", "the wait has no source")
	case len(all) == 1:
		ps.source(".wait", all[0])
	default:
		for i, s := range all {
			ps.source(fmt.Sprintf(".wait[%d]", i), s)
		}
	}
}

// places counts the places where a source says that the wait stands.
func (s *Source) places() int {
	n := 0
	for _, is := range []bool{s.Header != "", s.Path != nil, s.XML != nil, s.Text != nil, s.Calc != nil, s.Calendar != nil, s.Const != 0} {
		if is {
			n++
		}
	}
	return n
}

func (ps *problems) source(at string, s *Source) {
	if s.places() != 1 {
		ps.add(at, "give one of header, json, xml, text, calc, calendar and const", "it is not clear where the wait stands")
	}
	for _, d := range []struct {
		name string
		span time.Duration
	}{{".floor", s.Floor}, {".ceiling", s.Ceiling}, {".add", s.Add}, {".const", s.Const}} {
		if d.span < 0 {
			ps.add(at+d.name, "give a duration of zero or more", "%v is negative", d.span)
		}
	}
	if s.Ceiling > 0 && s.Floor > s.Ceiling {
		ps.add(at+".ceiling", "make it more than the floor", "the ceiling lies below the floor")
	}
	if s.Text != nil && s.Text.NumSubexp() == 0 {
		ps.add(at+".text", "put the wait in parentheses", "the expression has no group")
	}
	if x := s.XML; x != nil && (x.Name == "" || strings.ContainsAny(x.Name, ": <>")) {
		ps.add(at+".xml.name", "give the local name of an element, without prefix", "%q is not a local name", x.Name)
	}
	if c := s.Calendar; c != nil && !slices.Contains([]Period{Hourly, Daily, Monthly}, c.Every) {
		ps.add(at+".calendar.every", "use one of hour, day, month", "%q is not known", string(c.Every))
	}
	ps.format(at, s)
	ps.formula(at, s)
}

func (ps *problems) format(at string, s *Source) {
	reads := s.Header != "" || s.Path != nil || s.XML != nil || s.Text != nil
	switch {
	case s.Format == "" && reads:
		ps.add(at+".format", "say how the wait is written, such as s or iso8601", "the format is missing")
	case s.Format != "" && reads && !slices.Contains(times, s.Format):
		ps.add(at+".format", "use a format of a time, such as s or iso8601", "%q is not the format of a time", string(s.Format))
	case s.Calc != nil && s.Format != "" && s.Format != hint.Seconds && s.Format != hint.Millis:
		ps.add(at+".format", "use s or ms", "a formula cannot yield %q", string(s.Format))
	}
	if s.Key != "" && s.Format != hint.KeyValue {
		ps.add(at+".key", "leave it out, or use the format key_value", "%q has no members", string(s.Format))
	}
}

func (ps *problems) formula(at string, s *Source) {
	if s.Calc == nil {
		if len(s.Vars) > 0 {
			ps.add(at+".vars", "add calc, or leave it out", "there is no formula that uses them")
		}
		return
	}
	for _, name := range s.Calc.Names() {
		if s.Vars[name] == nil {
			ps.add(at+".vars", "name its JSON path", "%s has no value", name)
		}
	}
	for name := range s.Vars {
		if !slices.Contains(s.Calc.Names(), name) {
			ps.add(at+".vars."+name, "leave it out", "the formula does not use %s", name)
		}
	}
}

func (ps *problems) override(r *Rule) {
	if strings.ContainsAny(r.Override.Header, " \t:,") {
		ps.add(".override.header", "write it as in X-Should-Retry", "%q is not the name of a header", r.Override.Header)
	}
	if !r.When.everything() {
		ps.head(&r.When)
	}
	if len(r.When.JSON) > 0 || r.When.XML != nil || r.When.Text != nil || r.When.Body != BodyAny {
		ps.add(".when", "name no condition on the body", "a header that says whether to repeat is obeyed whatever the body is")
	}
	if r.Wait.named() || r.Then != (Verdict{}) {
		ps.add(".then", "leave it out", "the header says what happens")
	}
}
