package classify

import (
	"net/http"
	"regexp"
)

// override is an Override with its condition.
type override struct {
	rule
	id      string
	header  string
	yes, no *regexp.Regexp
}

var (
	saysYes = regexp.MustCompile(`(?i)^\s*true\s*$`)
	saysNo  = regexp.MustCompile(`(?i)^\s*false\s*$`)
)

// usual are the headers that several APIs and their SDKs agree on.
var usual = []override{
	{header: "Stripe-Should-Retry", yes: saysYes, no: saysNo, id: "Stripe-Should-Retry", rule: rule{kinds: anyKind}},
	{header: "X-Should-Retry", yes: saysYes, no: saysNo, id: "X-Should-Retry", rule: rule{kinds: anyKind}},
}

// obey takes the override of r, which may be wrong; then nobody sees the outcome.
func (c *Classifier) obey(r Rule) {
	o := override{id: r.ID, header: http.CanonicalHeaderKey(r.Override.Header), yes: r.Override.Yes, no: r.Override.No}
	if o.yes == nil {
		o.yes = saysYes
	}
	if o.no == nil {
		o.no = saysNo
	}
	var one Classifier
	one.tags = map[string]bool{}
	one.add(Rule{ID: r.ID, When: r.When})
	o.rule = one.rules[0]
	c.says = append(c.says, o)
}

// override obeys a server that says itself whether to repeat; see Override.
func (c *Classifier) override(x *Exchange, v Verdict, ruled bool) Verdict {
	if v.Retry == Refresh || x.Status == 0 {
		return v
	}
	name, yes, said := c.said(x)
	switch {
	case !said:
	case !yes:
		v.Retry, v.Rule = Never, name+": false"
	case v.Retry == Never && !ruled:
		// Whether the work was done is not said; so a write needs its key.
		v.Class, v.Executed, v.Retry, v.Rule = Transient, Maybe, Idempotent, name+": true"
	}
	return v
}

// said finds the first header that says yes or no.
func (c *Classifier) said(x *Exchange) (name string, yes, said bool) {
	var l look
	for i := range c.overrides() {
		o := c.at(i)
		lines := x.Header[o.header]
		if len(lines) == 0 {
			continue
		}
		if l.x == nil {
			l.x = x
		}
		if !o.fits(&l) {
			continue
		}
		switch value := lines[0]; {
		case o.yes.MatchString(value):
			return o.id, true, true
		case o.no.MatchString(value):
			return o.id, false, true
		}
	}
	return "", false, false
}

// overrides is how many there are, the usual ones included.
func (c *Classifier) overrides() int {
	if c == nil {
		return len(usual)
	}
	return len(c.says) + len(usual)
}

// at is the i-th override; the usual ones come last.
func (c *Classifier) at(i int) *override {
	if c != nil {
		if i < len(c.says) {
			return &c.says[i]
		}
		i -= len(c.says)
	}
	return &usual[i]
}
