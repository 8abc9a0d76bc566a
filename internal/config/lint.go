package config

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider/sheet"
)

// Lint lists settings that are valid each for itself and do not fit together.
// Their paths are filled in; Parse adds file and line.
func Lint(c *Config) []Warning {
	l := linter{config: c}
	l.secrets(c)
	l.queue(c)
	for i := range c.Endpoints {
		l.at = "endpoints." + c.Endpoints[i].Name
		l.endpoint(&c.Endpoints[i])
	}
	return l.all
}

type linter struct {
	config *Config
	at     string
	all    []Warning
}

func (l *linter) warn(path, remedy, format string, args ...any) {
	l.all = append(l.all, Warning{Path: sheet.Join(l.at, path), Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (l *linter) secrets(c *Config) {
	for path, s := range c.Secrets() {
		if s.Inline() {
			l.warn(path, "write env:NAME or file:/path", "the secret itself stands in the file, for everybody who can read it")
		}
	}
}

// span tells a duration as heed.yaml writes it.
func span(d time.Duration) string { return sheet.ShowDuration(d) }

func (l *linter) endpoint(e *Endpoint) {
	p := e.Policy.WithDefaults()
	l.times(&p)
	l.latency(&p, e.HealthyP99)
	l.breaker(&p)
	l.limits(e, &p)
	l.published(e, &p)
	l.writes(e, &p)
	l.transport(e)
	l.async(e)
}

// usual is what nobody set. Its times are a bound for the stranger and are not
// held against each other; a setting of one's own is.
var usual = policy.Policy{}.WithDefaults()

func (l *linter) times(p *policy.Policy) {
	r, t := p.Retry, p.Timeouts
	if p.Backoff.Base > p.Backoff.Cap {
		l.warn("backoff.base", "make it at most backoff.cap", "the base of %s is longer than the cap of %s, which wins",
			span(p.Backoff.Base), span(p.Backoff.Cap))
	}
	if r.Budget == policy.Unlimited {
		return
	}
	own := r.Budget != usual.Retry.Budget || t.Connect != usual.Timeouts.Connect || t.Header != usual.Timeouts.Header
	if one := t.Connect + t.Header; own && r.Budget < one {
		l.warn("retry.budget", "raise it, or shorten timeouts.connect and timeouts.header",
			"the budget of %s is shorter than one attempt may take (%s), so a slow one leaves no time for a second", span(r.Budget), span(one))
	}
	if t.Attempt > r.Budget {
		l.warn("timeouts.attempt", "make it shorter than retry.budget", "an attempt may take %s and its call only %s",
			span(t.Attempt), span(r.Budget))
	}
	if p.Backoff.Cap >= r.Budget {
		l.warn("backoff.cap", "make it shorter than retry.budget", "a wait of up to %s does not fit into the budget of %s",
			span(p.Backoff.Cap), span(r.Budget))
	}
	if r.Ceiling > r.Budget && r.Ceiling != usual.Retry.Ceiling {
		l.warn("retry.ceiling", "make it at most retry.budget",
			"a hint of up to %s would be waited for, and the budget of %s ends the call before", span(r.Ceiling), span(r.Budget))
	}
	if p.Limits.Stagger >= r.Budget {
		l.warn("limits.stagger", "make it shorter than retry.budget",
			"first attempts are spread over %s and calls end after %s, some of them unsent", span(p.Limits.Stagger), span(r.Budget))
	}
}

func (l *linter) latency(p *policy.Policy, p99 time.Duration) {
	if p99 == 0 {
		return
	}
	if p.Timeouts.Header < p99 {
		l.warn("timeouts.header", "make it longer than timeouts.healthy_p99",
			"%s cuts off answers that are healthy: one in a hundred takes %s or more", span(p.Timeouts.Header), span(p99))
	}
	if p.Timeouts.Attempt > 0 && p.Timeouts.Attempt < p99 {
		l.warn("timeouts.attempt", "make it longer than timeouts.healthy_p99",
			"%s cuts off attempts that are healthy: one in a hundred takes %s or more", span(p.Timeouts.Attempt), span(p99))
	}
	if p.Retry.Budget < p99 {
		l.warn("retry.budget", "make it longer than timeouts.healthy_p99",
			"the budget of %s is shorter than a healthy answer may take (%s)", span(p.Retry.Budget), span(p99))
	}
}

func (l *linter) breaker(p *policy.Policy) {
	b := p.Breaker
	if b.Off {
		return
	}
	if b.OnOpen == policy.OnOpenWait && b.Open >= p.Retry.Budget {
		l.warn("breaker.open", "make it shorter than retry.budget, or set breaker.on_open: fail",
			"calls wait for a breaker that stays open for %s, and their budget is %s", span(b.Open), span(p.Retry.Budget))
	}
	if b.Open > b.OpenMax {
		l.warn("breaker.open", "make it at most breaker.open_max", "it opens for %s and may be open for %s at most",
			span(b.Open), span(b.OpenMax))
	}
	if b.Ratio == 0 && b.Consecutive < 0 {
		l.warn("breaker", "set breaker.off: true, or one of breaker.consecutive and breaker.ratio", "both rules are off, so it never opens")
	}
}

func (l *linter) limits(e *Endpoint, p *policy.Policy) {
	m := p.Limits
	if m.Rate > 0 && m.Source == "" {
		l.warn("limits.source", "name the page, so that somebody can check it later", "the rate of %s has no source", sheet.ShowRate(m.Rate))
	}
	if m.Rate > 0 && m.Learn.Start > 0 {
		l.warn("limits.learn.start", "leave it out", "a rate is set, so none is learned")
	}
	if m.TenantShare < 1 && m.Concurrency == 0 {
		l.warn("limits.tenant_share", "set limits.concurrency", "without a cap there is nothing to have a share of")
	}
	if expected := float64(m.Concurrency) / e.HealthyP99.Seconds(); m.Rate > 0 && m.Concurrency > 0 && e.HealthyP99 > 0 && expected > 2*m.Rate {
		l.warn("limits.concurrency", "lower it, or let callers wait in line on purpose",
			"%d requests at once of %s each ask for %.4g/s, and the limit is %s", m.Concurrency, span(e.HealthyP99), expected, sheet.ShowRate(m.Rate))
	}
	for i, g := range m.Groups {
		if m.Concurrency > 0 && g.Concurrency > m.Concurrency {
			l.warn(fmt.Sprintf("limits.groups[%d].concurrency", i), "make it at most limits.concurrency",
				"group %s may have %d in flight and the endpoint %d", g.Name, g.Concurrency, m.Concurrency)
		}
	}
}

// published compares with what the provider itself says it bears.
func (l *linter) published(e *Endpoint, p *policy.Policy) {
	known, ok := l.config.profile(e)
	if !ok {
		return
	}
	if known.Signed && e.Async.needsQueue() {
		l.warn("async", "let the caller repeat, who can sign",
			"%s wants every attempt signed anew, and the queue sends what was signed when the call came", known.Name)
	}
	if known.Policy.Limits.Rate == 0 {
		return
	}
	if most := known.Policy.Limits; p.Limits.Rate > most.Rate && p.Limits.Source == most.Source {
		l.warn("limits.rate", "lower it, or name as limits.source where more was agreed",
			"%s is more than the published limit of %s (%s)", sheet.ShowRate(p.Limits.Rate), sheet.ShowRate(most.Rate), most.Source)
	}
}

func (l *linter) writes(e *Endpoint, p *policy.Policy) {
	rules, _ := l.config.own(e)
	for i, r := range rules {
		at := fmt.Sprintf("rules[%d]", i)
		v := r.Then
		if v.Retry == classify.Any && v.Executed != classify.No && !readsOnly(r.When.Methods) {
			l.warn(at+".then.retry", "use idempotent, or say executed: no if that is certain",
				"rule %s repeats writes that may have been done", r.ID)
		}
		if v.Retry == classify.SameKey && p.Key.Header == "" {
			l.warn(at+".then.retry", "set idempotency.header, or use idempotent",
				"rule %s repeats with the same key, and the provider honours none", r.ID)
		}
		if p.Verify.Mode == policy.VerifyOff && looks(&r) {
			l.warn(at+".when", "set verify: head", "rule %s looks at the body, and verify is off", r.ID)
		}
	}
}

func readsOnly(methods []string) bool {
	return len(methods) > 0 && !slices.ContainsFunc(methods, func(m string) bool {
		return m != http.MethodGet && m != http.MethodHead && m != http.MethodOptions
	})
}

func looks(r *classify.Rule) bool {
	w := r.When
	return len(w.JSON) > 0 || w.XML != nil || w.Text != nil || w.Body != classify.BodyAny
}

func (l *linter) transport(e *Endpoint) {
	if e.URL != nil && e.Auth.Kind != AuthNone && e.URL.Scheme == "http" && !local(e.URL.Hostname()) {
		l.warn("url", "use https", "the credential travels unencrypted")
	}
	if t := e.Auth.TokenURL; t != nil && t.Scheme == "http" && !local(t.Hostname()) {
		l.warn("auth.token_url", "use https", "the password travels unencrypted")
	}
	if e.URL == nil {
		return
	}
	if ip, closed := inside(e.URL.Hostname()); closed && !slices.ContainsFunc(e.Networks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		l.warn("url", "write networks: ["+netip.PrefixFrom(ip, ip.BitLen()).String()+"], or the range that it is in",
			"%s is an address of this machine or its own network, which heed does not dial unless it is told to: each call would be a 502",
			e.URL.Hostname())
	}
}

// inside is the address that a URL names without asking anybody, and whether it
// is one that is not dialed by itself.
func inside(host string) (netip.Addr, bool) {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	ip = ip.Unmap().WithZone("")
	return ip, err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
}

func local(host string) bool {
	ip, _ := inside(host)
	return ip.IsLoopback()
}
