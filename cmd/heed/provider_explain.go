package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider"
)

type providerExplain struct {
	Name   string `arg:"" help:"A built-in profile (heed provider list), or the file of one of your own."`
	Method string `short:"X" placeholder:"METHOD" help:"The method of the request, where only the answer is given. Default GET."`
	Path   string `placeholder:"PATH" help:"The path of the request, where only the answer is given."`
	JSON   bool   `help:"Print JSON."`
}

// Help is what heed provider explain --help says beside the flags.
func (providerExplain) Help() string {
	return `Reads a request and the answer to it, or an answer alone, as HTTP text from standard input. Nothing is sent, and nothing of the body is printed.

Examples:

    curl -si https://api.example.com/v1/items | heed provider explain generic --path /v1/items
    heed provider explain stripe < exchange.http
    heed provider explain ./our-ils.yaml --json < exchange.http`
}

// explained is what heed provider explain tells, as JSON.
type explained struct {
	Profile  string   `json:"profile"`
	Method   string   `json:"method"`
	Status   int      `json:"status"`
	Class    string   `json:"class"`
	Executed string   `json:"executed"`
	Retry    string   `json:"retry"`
	Scope    string   `json:"scope"`
	Repeat   bool     `json:"repeat"`
	Rule     string   `json:"rule"`
	Ruled    bool     `json:"of_profile"`
	Because  string   `json:"because,omitempty"`
	Grade    string   `json:"grade,omitempty"`
	Source   string   `json:"source,omitempty"`
	Wait     float64  `json:"wait_s"`
	From     string   `json:"wait_from,omitempty"`
	Quota    *quota   `json:"quota,omitempty"`
	Odd      []string `json:"odd,omitempty"`
	Peeked   int      `json:"body_bytes_asked"`
	Rules    []step   `json:"rules"`
	Notes    []string `json:"notes,omitempty"`

	wait   time.Duration
	answer string
	repeat string
}

type quota struct {
	Remaining *int64   `json:"remaining,omitempty"`
	Limit     *int64   `json:"limit,omitempty"`
	Reset     *float64 `json:"reset_s,omitempty"`
	From      string   `json:"reset_from,omitempty"`
}

type step struct {
	Rule string `json:"rule"`
	Held bool   `json:"held"`
	Why  string `json:"why,omitempty"`
}

// Run explains the exchange.
func (c *providerExplain) Run(sh *shell) error {
	p, err := profile(c.Name)
	if err != nil {
		return err
	}
	if f, ok := sh.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		sh.say("reading an exchange from the terminal; end it with ctrl-d")
	}
	text, err := bounded(sh.in, "standard input")
	if err != nil {
		return usage(err)
	}
	x, err := provider.ParseHTTP(text)
	if err != nil {
		return usage(err)
	}
	if c.Method != "" {
		x.Request.Method = strings.ToUpper(c.Method)
	}
	if c.Path != "" {
		x.Request.Path = c.Path
	}
	x.At = time.Now()
	j, err := p.Judge()
	if err != nil {
		return err
	}
	e := explain(&p, j, x)
	if c.JSON {
		enc := json.NewEncoder(sh.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(e)
	}
	return e.write(sh)
}

// explain puts together what is told of an exchange.
func explain(p *provider.Profile, j *provider.Judge, x *provider.Pasted) *explained {
	o, why := j.Explain(&x.Exchange)
	v, h := &o.Verdict, &o.Hint
	e := &explained{Profile: p.Name, Method: x.Request.Method, Status: x.Response.Status,
		Class: v.Class.String(), Executed: v.Executed.String(), Retry: v.Retry.String(), Scope: v.Scope.String(),
		Rule: v.Rule, Ruled: o.Ruled, wait: o.Wait, Wait: o.Wait.Seconds(), From: waitFrom(&o, &why),
		Odd: h.Flags.Words(), Peeked: o.Peeked, Notes: x.Notes, Rules: []step{}}
	for _, s := range why.Steps {
		e.Rules = append(e.Rules, step{s.Rule, s.Held, s.Why})
	}
	for _, f := range p.Facts {
		if o.Ruled && f.Block == "rules" && f.About == v.Rule {
			e.Because, _, _ = strings.Cut(f.Says, " → ")
			e.Grade, e.Source = string(f.Grade), f.Origin
			break
		}
	}
	keyed := p.Policy.Key.Header != "" && x.Request.Header.Get(p.Policy.Key.Header) != ""
	e.Repeat = v.Class != classify.OK && v.Repeatable(x.Request.Method, keyed)
	e.repeat = repeats(e, v, keyed)
	if v.Class == classify.OK && redirects(x.Response.Status) {
		e.elsewhere(x)
	}
	if h.HasRemaining || h.HasLimit || h.HasReset {
		e.Quota = &quota{From: h.ResetFrom}
		if h.HasRemaining {
			e.Quota.Remaining = &h.Remaining
		}
		if h.HasLimit {
			e.Quota.Limit = &h.Limit
		}
		if h.HasReset {
			s := h.Reset.Seconds()
			e.Quota.Reset = &s
		}
	}
	e.answer = answered(x, o.Peeked)
	return e
}

// elsewhere says of a redirect what heed call does with it.
func (e *explained) elsewhere(x *provider.Pasted) {
	e.Class, e.Executed, e.Retry = classify.Permanent.String(), classify.Maybe.String(), classify.Never.String()
	e.Repeat, e.repeat = false, "no: it has to be asked for at the URL of its Location"
	e.Rule, e.Ruled = fmt.Sprintf("status %d", x.Response.Status), false
	e.Notes = append(e.Notes, "a redirect holds no result: heed call does not follow it and ends with permanent; give the answer of the URL it names (curl -L)")
}

// waitFrom says who asks for the wait, and where it was read.
func waitFrom(o *provider.Outcome, why *classify.Explanation) string {
	switch {
	case o.Source == "":
		return ""
	case o.Source != o.Verdict.Rule:
		return "header " + o.Source
	case why.From == "":
		return "rule " + o.Source
	}
	return "rule " + o.Source + ", " + why.From
}

// repeats says whether the same request may be sent again.
func repeats(e *explained, v *classify.Verdict, keyed bool) string {
	switch {
	case v.Class == classify.OK:
		return "there is no need to"
	case v.Retry == classify.Refresh && e.Repeat:
		return "once, with a new credential"
	case e.Repeat && v.Retry == classify.Once:
		return "once"
	case e.Repeat:
		return "yes"
	case v.Retry == classify.Never:
		return "no: it cannot help"
	case !keyed:
		return "no: " + e.Method + " is repeated only with an idempotency key, and there is none that this provider honours"
	}
	return "no"
}

// answered is what came, in one line.
func answered(x *provider.Pasted, peeked int) string {
	path, _, _ := strings.Cut(x.Request.Path, "?")
	text := fmt.Sprintf("%s %s: status %d", x.Request.Method, path, x.Response.Status)
	if media := x.Response.Header.Get("Content-Type"); media != "" {
		text += ", " + media
	}
	if peeked > 0 {
		return text + fmt.Sprintf("; rules look at its first %d KiB", peeked>>10)
	}
	return text + "; no rule looks at its body"
}

// write tells it to people.
func (e *explained) write(sh *shell) error {
	rows := [][2]string{{"answer", e.answer}, {"decided", e.decided()}}
	if e.Because != "" {
		rows = append(rows, [2]string{"because", e.Because})
	}
	wait := "none is asked for"
	if e.From != "" {
		wait = fmt.Sprintf("at least %v, by %s", e.wait, e.From)
	}
	rows = append(rows, [2]string{"means", fmt.Sprintf("%s; executed %s; retry %s; scope %s", e.Class, e.Executed, e.Retry, e.Scope)},
		[2]string{"repeat", e.repeat}, [2]string{"wait", wait})
	if e.Quota != nil {
		rows = append(rows, [2]string{"quota", e.Quota.String()})
	}
	if len(e.Odd) > 0 {
		rows = append(rows, [2]string{"odd", "headers that tell of time: " + strings.Join(e.Odd, ", ")})
	}
	for _, note := range e.Notes {
		rows = append(rows, [2]string{"note", note})
	}
	if err := sh.pairs(rows); err != nil {
		return err
	}
	return e.steps(sh)
}

// decided says what did.
func (e *explained) decided() string {
	switch {
	case e.Ruled && e.Grade != "":
		return "rule " + e.Rule + " (" + e.Grade + ": " + e.Source + ")"
	case e.Ruled:
		return "rule " + e.Rule
	case strings.HasSuffix(e.Rule, ": true"), strings.HasSuffix(e.Rule, ": false"):
		return "the server itself, by header " + e.Rule
	}
	return "the neutral table, by " + e.Rule
}

func (q *quota) String() string {
	var parts []string
	if q.Remaining != nil {
		parts = append(parts, fmt.Sprintf("%d remaining", *q.Remaining))
	}
	if q.Limit != nil {
		parts = append(parts, fmt.Sprintf("limit %d", *q.Limit))
	}
	if q.Reset != nil {
		parts = append(parts, fmt.Sprintf("more in %v (%s)", time.Duration(*q.Reset*float64(time.Second)), q.From))
	}
	return strings.Join(parts, ", ")
}

// steps tells what became of each rule.
func (e *explained) steps(sh *shell) error {
	if len(e.Rules) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(sh.out); err != nil {
		return err
	}
	t, after := grid{{"RULE", "", "WHY NOT"}}, false
	for _, s := range e.Rules {
		switch {
		case s.Held:
			t, after = append(t, []string{s.Rule, "held", ""}), true
		case after:
			t = append(t, []string{s.Rule, "not asked", ""})
		default:
			t = append(t, []string{s.Rule, "no", s.Why})
		}
	}
	return t.write(sh.out, columns{Width: sh.width(), Wrap: []int{2}})
}
