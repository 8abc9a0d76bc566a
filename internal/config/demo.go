package config

import (
	_ "embed"
	"net/netip"
	"net/url"
	"time"

	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
)

// initial is what Init returns.
//
//go:embed init.yaml
var initial []byte

// Init returns a commented heed.yaml to begin with.
func Init() []byte { return append([]byte(nil), initial...) }

// Demo returns the settings that are used without a heed.yaml: one endpoint,
// demo, at target, which may be on this machine. Its waits are short, so that
// an outage of moments and a 429 that asks for a second are survived while
// somebody watches; and it has a queue, so that a call can be answered later.
func Demo(target string) *Config {
	c := defaults()
	c.Version = 1
	c.Queue = defaultQueue()
	u, err := parseURL(target)
	if err != nil {
		u = &url.URL{Scheme: "http", Host: "127.0.0.1"} // nobody is there; calls say so
	}
	demo := Bare("demo", u)
	p := &demo.Policy
	p.Retry.Budget = 30 * time.Second
	p.Backoff = policy.Backoff{Base: 100 * time.Millisecond, Cap: 2 * time.Second}
	p.Hints.JitterMax = 100 * time.Millisecond
	p.Limits.Learn.Off = true // its 429s are staged path by path and say nothing of a rate
	p.Timeouts.Connect = 2 * time.Second
	p.Timeouts.Header = 10 * time.Second
	demo.Policy = p.WithDefaults()
	demo.Networks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	c.Endpoints = []Endpoint{demo}
	return c
}

// Bare returns an endpoint at u for which nothing was agreed: what is said in
// heed.yaml by its URL alone.
func Bare(name string, u *url.URL) Endpoint {
	e := Endpoint{Name: name, URL: u, Policy: policy.Policy{Endpoint: name}, Auth: Auth{Kind: AuthNone}}
	if known, err := provider.Get(unknownAPI); err == nil {
		var t provider.Terms
		known.Overlay(&t)
		e.Profile, e.Doubtful = unknownAPI, doubtful(&t)
		e.Rules, e.Hints = t.Dialect()
	}
	return e
}
