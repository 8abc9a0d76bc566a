package classify

import (
	"net/http"
	"slices"
	"strings"

	"github.com/heedproject/heed/policy"
)

// Classifier knows a provider's dialect. New makes it; nil knows the
// vendor-neutral table only. It is safe for use by many goroutines.
type Classifier struct {
	rules []rule
	says  []override      // headers in which the server says whether to repeat
	peeks bool            // some rule looks at bodies
	tags  map[string]bool // local names that some rule looks for
}

// rule is a Rule with its condition in the form that is compared.
type rule struct {
	Rule
	kinds  kind // the bodies it looks at; all where it names media types
	inBody bool // When has a condition on the body
	peek   int  // the bytes it needs; 0: none
	waits  bool // Wait names a source
	whole  bool // it can hold only for a body that is seen to its end
}

// sniff is how much shows whether a body is empty, or HTML.
const sniff = 1 << 10

// Peek returns how many bytes of the body should be put into x before it is
// classified: as many as the rules need that hold for everything but the body,
// 0 for none, never more than policy.PeekLimit. The neutral table needs none,
// so that an answer which no rule concerns costs nothing, however large.
func (c *Classifier) Peek(x *Exchange) int {
	if c == nil || !c.peeks || x.Failure != NoFailure || x.ContentLength == 0 || bodyless(x) {
		return 0
	}
	l := look{x: x}
	need := 0
	for i := range c.rules {
		r := &c.rules[i]
		if !r.fits(&l) {
			continue
		}
		if r.peek > need && r.asks(&l) {
			need = r.peek
		}
		if !r.inBody {
			break // it decides, whatever the body is
		}
	}
	return need
}

// asks tells whether r, which fits, wants to look at this body: at a picture
// only if it names pictures, and not for emptiness, or for what may nowhere be,
// at what is known to be long.
func (r *rule) asks(l *look) bool {
	if l.kind() == kindBinary && len(r.When.Media)+len(r.When.NotMedia) == 0 {
		return false
	}
	if r.whole && l.x.ContentLength > policy.PeekLimit {
		return false
	}
	return r.When.Body != BodyEmpty || l.x.ContentLength < sniff || r.Wait.inBody()
}

// first returns the verdict of the first rule that holds.
func (c *Classifier) first(x *Exchange) (Verdict, bool) {
	l := look{x: x, tagNames: c.tags}
	for i := range c.rules {
		r := &c.rules[i]
		if !r.fits(&l) || r.inBody && !r.holds(&l) {
			continue
		}
		v := r.Then
		v.Rule = r.ID
		if r.waits {
			wait, _ := r.Wait.read(&l)
			v.Wait = max(v.Wait, wait)
		}
		return v, true
	}
	return Verdict{}, false
}

// fits tells whether all holds that needs no body.
func (r *rule) fits(l *look) bool {
	w, x := &r.When, l.x
	if !w.hasStatus(x) || !w.hasFailure(x) || !w.hasMethod(x) || !w.hasPath(x) || !w.hasAsked(x) {
		return false
	}
	if r.kinds == anyKind && len(w.Media)+len(w.NotMedia)+len(w.Header) == 0 {
		return true
	}
	if x.Status == 0 {
		return false // there is no answer to have a type or a header
	}
	return l.kind()&r.kinds != 0 && w.hasMedia(l) && w.hasOtherMedia(l) && fitsHeader(w.Header, x.Header)
}

func (w *Match) hasStatus(x *Exchange) bool {
	return len(w.Statuses) == 0 || inRanges(w.Statuses, x.Status)
}

func (w *Match) hasFailure(x *Exchange) bool {
	return len(w.Failures) == 0 || slices.Contains(w.Failures, x.Failure)
}

func (w *Match) hasMethod(x *Exchange) bool {
	return len(w.Methods) == 0 || slices.Contains(w.Methods, methodOf(x))
}

func (w *Match) hasPath(x *Exchange) bool {
	return len(w.Paths) == 0 || slices.ContainsFunc(w.Paths, func(glob string) bool { return policy.Match(glob, x.Path) })
}

// hasAsked tells whether all that the request accepts is asked for.
func (w *Match) hasAsked(x *Exchange) bool {
	if len(w.Asked) == 0 || x.Accept == "" {
		return len(w.Asked) == 0
	}
	for media := range strings.SplitSeq(x.Accept, ",") {
		if !oneOf(w.Asked, essenceOf(media)) {
			return false
		}
	}
	return true
}

func (w *Match) hasMedia(l *look) bool {
	return len(w.Media) == 0 || oneOf(w.Media, l.essence)
}

func (w *Match) hasOtherMedia(l *look) bool {
	return len(w.NotMedia) == 0 ||
		l.essence != "" && !bodyless(l.x) && l.x.ContentLength != 0 && !oneOf(w.NotMedia, l.essence)
}

func oneOf(patterns []string, essence string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return policy.Match(p, essence) })
}

func methodOf(x *Exchange) string {
	if x.Method == "" {
		return http.MethodGet
	}
	return x.Method
}

func inRanges(ranges []StatusRange, status int) bool {
	for _, r := range ranges {
		if r.From <= status && status <= r.To {
			return true
		}
	}
	return false
}

func fitsHeader(matches []HeaderMatch, h http.Header) bool {
	for i := range matches {
		m := &matches[i]
		lines := h[m.Name]
		there := len(lines) > 0
		if m.Value != nil {
			there = slices.ContainsFunc(lines, m.Value.MatchString)
		}
		if there != (m.Present == nil || *m.Present) {
			return false
		}
	}
	return true
}

// holds tells whether the conditions on the body hold.
func (r *rule) holds(l *look) bool {
	w := &r.When
	if w.Body != BodyAny && !l.is(w.Body) {
		return false
	}
	if w.Text == nil && w.XML == nil && len(w.JSON) == 0 {
		return true
	}
	if !l.seen() || w.Text != nil && !w.Text.Match(l.text()) || w.XML != nil && !l.hasTag(w.XML) {
		return false
	}
	for i := range w.JSON {
		if !l.hasJSON(&w.JSON[i]) {
			return false
		}
	}
	return true
}
