package classify

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Step is what became of one rule.
type Step struct {
	Rule string
	Held bool
	// Why says what did not hold. "": all did, or the rule was not asked,
	// because one before it held.
	Why string
}

// Explanation is how a verdict came about. It quotes conditions and never what
// an answer holds.
type Explanation struct {
	// Steps are all rules, in their order.
	Steps []Step
	// Wait is what the rule that held asks for, and From where it reads that.
	Wait time.Duration
	From string
}

// Explain tells rule by rule why Classify decides as it does. It is slower
// than Classify and decides nothing.
func (c *Classifier) Explain(x *Exchange) Explanation {
	var e Explanation
	if c == nil {
		return e
	}
	l := look{x: x, tagNames: c.tags}
	held := false
	for i := range c.rules {
		r := &c.rules[i]
		s := Step{Rule: r.ID}
		if !held {
			s.Why = r.why(&l)
			if s.Held = s.Why == ""; s.Held {
				held = true
				e.Wait, e.From = r.asked(&l)
			}
		}
		e.Steps = append(e.Steps, s)
	}
	return e
}

// asked is the wait of a rule that holds, and where it was read.
func (r *rule) asked(l *look) (time.Duration, string) {
	wait, from := r.Wait.read(l)
	switch {
	case r.Then.Wait >= wait && r.Then.Wait > 0:
		return r.Then.Wait, "then.wait"
	case wait == 0:
		return 0, ""
	case from == nil:
		return wait, "the floor"
	}
	return wait, from.String()
}

// String says where the wait stands.
func (s *Source) String() string {
	switch {
	case s.Header != "":
		return "header " + s.Header
	case s.Path != nil:
		return "json " + spelling(s.Path)
	case s.XML != nil && s.XML.Attr != "":
		return "xml " + s.XML.Name + "/@" + s.XML.Attr
	case s.XML != nil:
		return "xml " + s.XML.Name
	case s.Text != nil:
		return "text " + s.Text.String()
	case s.Calc != nil:
		return "calc " + s.Calc.String()
	case s.Calendar != nil:
		return "the next " + string(s.Calendar.Every)
	}
	return "const"
}

// spelling is how a selector was written, if it knows.
func spelling(s Selector) string {
	if t, ok := s.(fmt.Stringer); ok {
		return t.String()
	}
	return "the path"
}

// why says what keeps the rule from holding, or "".
func (r *rule) why(l *look) string {
	if why := r.whyRequest(l); why != "" {
		return why
	}
	if !r.fits(l) {
		return r.whyHead(l)
	}
	if r.inBody && !r.holds(l) {
		return r.whyBody(l)
	}
	return ""
}

func (r *rule) whyRequest(l *look) string {
	w, x := &r.When, l.x
	switch {
	case !w.hasStatus(x):
		if x.Status == 0 {
			return "there is no answer"
		}
		return fmt.Sprintf("status %d is not %s", x.Status, ranges(w.Statuses))
	case !w.hasFailure(x):
		return "the attempt did not fail that way"
	case !w.hasMethod(x):
		return methodOf(x) + " is not " + strings.Join(w.Methods, " or ")
	case !w.hasPath(x):
		return "the path is not " + strings.Join(w.Paths, " or ")
	case !w.hasAsked(x):
		return "the request accepts more than " + strings.Join(w.Asked, " or ") + ", or does not say"
	}
	return ""
}

func ranges(all []StatusRange) string {
	texts := make([]string, len(all))
	for i, s := range all {
		switch {
		case s.From == s.To:
			texts[i] = fmt.Sprint(s.From)
		case s.From%100 == 0 && s.To == s.From+99:
			texts[i] = fmt.Sprintf("%dxx", s.From/100)
		default:
			texts[i] = fmt.Sprintf("%d-%d", s.From, s.To)
		}
	}
	return strings.Join(texts, " or ")
}

func (r *rule) whyHead(l *look) string {
	w := &r.When
	if l.x.Status == 0 {
		return "there is no answer"
	}
	media := "the media type " + l.essence
	if l.kind() == kindNone {
		media = "an answer without a media type"
	}
	switch {
	case !w.hasMedia(l):
		return media + " is not " + strings.Join(w.Media, " or ")
	case !w.hasOtherMedia(l) && l.essence == "":
		return media + " proves nothing"
	case !w.hasOtherMedia(l):
		return media + " is expected, or there is no body"
	case l.kind()&r.kinds == 0:
		return media + " cannot hold what the rule looks for"
	}
	for i := range w.Header {
		m := &w.Header[i]
		if !fitsHeader(w.Header[i:i+1], l.x.Header) {
			return "header " + m.Name + " " + m.wants()
		}
	}
	return "it does not fit"
}

// wants says what a header is not.
func (m *HeaderMatch) wants() string {
	absent := m.Present != nil && !*m.Present
	switch {
	case m.Value != nil && absent:
		return "matches " + m.Value.String()
	case m.Value != nil:
		return "does not match " + m.Value.String()
	case absent:
		return "is there"
	}
	return "is absent"
}

func (r *rule) whyBody(l *look) string {
	w := &r.When
	if coding := Coding(l.x.Header); !l.x.Peeked && coding != "" && !understood(coding) {
		return fmt.Sprintf("the body is coded as %.20q, which cannot be read here", coding)
	}
	if w.Body != BodyAny && !l.is(w.Body) {
		return "the body is not " + string(w.Body)
	}
	if !l.seen() {
		return "there is no body to look at"
	}
	if w.Text != nil && !w.Text.Match(l.text()) {
		return "the text has no " + w.Text.String()
	}
	if w.XML != nil && !l.hasTag(w.XML) {
		return "the body has no element " + w.XML.wants()
	}
	for i := range w.JSON {
		if m := &w.JSON[i]; !l.hasJSON(m) {
			return m.wants(l)
		}
	}
	return "it does not hold"
}

func (m *XMLMatch) wants() string {
	text := strings.Join(m.Names, " or ")
	if m.Attr != "" {
		text += " with attribute " + m.Attr
	}
	return text + matching(m.Value)
}

func matching(v *regexp.Regexp) string {
	if v == nil {
		return ""
	}
	return " matching " + v.String()
}

// wants says what is not so of the document.
func (m *JSONMatch) wants(l *look) string {
	path := spelling(m.Path)
	switch _, all, ok := l.document(); {
	case !ok:
		return "the body is not JSON"
	case m.Absent && !all:
		return "the body is not whole, so that " + path + " may follow"
	case m.Absent:
		return path + " is there"
	case m.Value == nil:
		return path + " is absent"
	}
	return "no value of " + path + " matches " + m.Value.String()
}
