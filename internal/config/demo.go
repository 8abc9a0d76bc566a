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
	p := policy.Policy{Endpoint: "demo"}
	p.Retry.Budget = 30 * time.Second
	p.Backoff = policy.Backoff{Base: 100 * time.Millisecond, Cap: 2 * time.Second}
	p.Hints.JitterMax = 100 * time.Millisecond
	p.Limits.Learn.Off = true // its 429s are staged path by path and say nothing of a rate
	p.Timeouts.Connect = 2 * time.Second
	p.Timeouts.Header = 10 * time.Second
	demo := Endpoint{
		Name:     "demo",
		URL:      u,
		Policy:   p.WithDefaults(),
		Auth:     Auth{Kind: AuthNone},
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	}
	if known, err := provider.Get(unknownAPI); err == nil {
		var t provider.Terms
		known.Overlay(&t)
		demo.Profile, demo.Doubtful = unknownAPI, doubtful(&t)
		demo.Rules, demo.Hints = t.Dialect()
	}
	c.Endpoints = []Endpoint{demo}
	return c
}
