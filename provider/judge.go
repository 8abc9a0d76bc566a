package provider

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// Judge reads answers as a profile understands them.
type Judge struct {
	classifier *classify.Classifier
	reader     *hint.Reader
	rules      []string // ids of the profile's own rules
}

// Dialect compiles rules and hints, the standard hints behind the own ones, for
// the fields Classifier and Hints of a heed.Transport. Put rules of your own
// before those of the profile first; only these can make it fail.
func (p *Profile) Dialect() (*classify.Classifier, *hint.Reader, error) {
	classifier, problems := classify.New(p.Rules)
	hints := p.Hints
	if hints != nil {
		hints = append(slices.Clone(hints), hint.Standard()...)
	}
	reader, more := hint.NewReader(hints)
	return classifier, reader, failed(append(problems, more...))
}

// Judge returns the judge of p.
func (p *Profile) Judge() (*Judge, error) {
	j := &Judge{}
	var err error
	j.classifier, j.reader, err = p.Dialect()
	for _, r := range p.Rules {
		j.rules = append(j.rules, r.ID)
	}
	return j, err
}

// Outcome is what an exchange came to.
type Outcome struct {
	Verdict classify.Verdict
	Hint    hint.Hint
	// Wait is what the answer makes a caller wait, and Source the header or
	// the rule that said so. "": nobody did.
	Wait   time.Duration
	Source string
	// Ruled tells that a rule of the profile decided.
	Ruled bool
	// Peeked is how much of the body was asked for, in bytes.
	Peeked int
}

// Try says what x means. It takes place at the Date of its answer.
func (j *Judge) Try(x *Exchange) Outcome {
	in := x.seen()
	return j.try(x, &in)
}

// Explain says what x means, and rule by rule why.
func (j *Judge) Explain(x *Exchange) (Outcome, classify.Explanation) {
	in := x.seen()
	o := j.try(x, &in)
	return o, j.classifier.Explain(&in)
}

func (j *Judge) try(x *Exchange, in *classify.Exchange) Outcome {
	o := Outcome{Hint: j.reader.Read(in.Header, in.Now), Peeked: j.classifier.Peek(in)}
	if o.Peeked > 0 {
		x.peek(in, o.Peeked)
	}
	o.Verdict = j.classifier.Classify(in, &policy.Verify{Mode: policy.VerifyHead})
	o.Ruled = slices.Contains(j.rules, o.Verdict.Rule)
	o.Wait, o.Source = waitOf(&o)
	return o
}

// waitOf is the longer of what the rule and the headers say. A throttle that
// says neither, and that nothing remains, holds until the reset.
func waitOf(o *Outcome) (time.Duration, string) {
	v, h := &o.Verdict, &o.Hint
	switch {
	case v.Class == classify.OK:
		return 0, ""
	case h.HasWait && h.Wait > 0 && h.Wait >= v.Wait:
		return h.Wait, h.From
	case v.Wait > 0:
		return v.Wait, v.Rule
	case v.Class == classify.Throttled && v.Scope != classify.ScopeCall && h.HasReset && h.HasRemaining && h.Remaining == 0:
		return h.Reset, h.ResetFrom
	}
	return 0, ""
}

// seen is x as the classifier sees it before it looks at the body.
func (x *Exchange) seen() classify.Exchange {
	path, _, _ := strings.Cut(x.Request.Path, "?")
	in := classify.Exchange{
		Method: x.Request.Method, Path: path, Accept: x.Request.Header.Get("Accept"), Failure: x.Failure, Status: x.Response.Status,
		Header: x.Response.Header, Now: x.At,
	}
	if in.Now.IsZero() {
		in.Now = noon
	}
	if in.Header == nil {
		in.Header = http.Header{}
	}
	if date, ok := hint.ParseDate(in.Header.Get("Date"), in.Now); ok {
		in.Now = date
	}
	in.SentAt = in.Now.Add(-time.Second)
	if x.Failure == classify.NoFailure {
		wire, length := x.Response.Wire()
		in.ContentLength = int64(length)
		if len(wire) < length {
			in.Failure = classify.BodyCut
		}
	}
	return in
}

// peek puts as much of the body into in as was asked for.
func (x *Exchange) peek(in *classify.Exchange, most int) {
	wire, length := x.Response.Wire()
	in.BodyEnd = len(wire) == length && length < most
	wire = wire[:min(len(wire), most)]
	if len(wire) == 0 { // nothing is nothing in any coding
		in.Body, in.Peeked = wire, true
		return
	}
	var body io.Reader
	if body, in.Peeked = classify.Decode(in.Header, bytes.NewReader(wire)); in.Peeked {
		in.Body, _ = io.ReadAll(io.LimitReader(body, policy.PeekLimit)) // a cut stream still has a beginning
	}
}

// Differs says in what o is not what x expects, a sentence each.
func (x *Exchange) Differs(o *Outcome) []string {
	var all []string
	want, got := &x.Expect, &o.Verdict
	differ := func(what string, got, want any) {
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			all = append(all, fmt.Sprintf("%s: got %s, want %s", what, word(g), word(w)))
		}
	}
	differ("class", got.Class, want.Class)
	differ("executed", got.Executed, want.Executed)
	differ("retry", got.Retry, want.Retry)
	differ("scope", got.Scope, want.Scope)
	differ("wait", o.Wait, want.Wait)
	if want.Source != "" {
		differ("source", strings.ToLower(o.Source), strings.ToLower(want.Source))
	}
	rule := ""
	if o.Ruled {
		rule = got.Rule
	}
	differ("rule", rule, want.Rule)
	if want.Remaining != nil {
		told := "nothing"
		if o.Hint.HasRemaining {
			told = fmt.Sprint(o.Hint.Remaining)
		}
		differ("remaining", told, *want.Remaining)
	}
	return all
}

func word(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
