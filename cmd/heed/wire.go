package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/config"
)

// options are what a command brings along to app: log lines go to stdout.
func (sh *shell) options() app.Options {
	return app.Options{Version: versionOf(), Out: sh.out, Getenv: sh.value, Grace: grace}
}

// value is the environment as the configuration asks for it.
func (sh *shell) value(name string) string {
	v, _ := sh.getenv(name)
	return v
}

// target is where a call goes and with what policy.
type target struct {
	endpoint  string // empty for a URL
	url       *url.URL
	transport *heed.Transport
	close     func()
}

// endpoint finds where endpoint/path leads by the configuration. w watches it.
func (sh *shell) endpoint(where, file string, w *watch) (*target, error) {
	name, path := strings.TrimPrefix(where, "/"), ""
	if i := strings.IndexAny(name, "/?"); i >= 0 {
		name, path = name[:i], name[i:]
	}
	if scheme := schemeOf(name); scheme != "" {
		host := name[strings.LastIndexByte(name, '@')+1:]
		return nil, fmt.Errorf("%s is no endpoint; for a URL write the scheme too: %s://%s/…", host, scheme, host)
	}
	cfg, stop, err := sh.settings(file, load)
	if err != nil {
		return nil, err
	}
	if cfg.File == "" && name != cfg.Endpoints[0].Name {
		stop()
		return nil, fmt.Errorf("there is no %s here that could have an endpoint %q; name the file with --config FILE, "+
			"write one with heed init, or give a whole URL (https://…)", defaultFile, name)
	}
	opts := sh.options()
	opts.Doubt = w.doubt
	e, err := app.Open(cfg, name, opts, w.observe)
	if err != nil {
		stop()
		return nil, err
	}
	end := func() { e.Close(); stop() }
	u, err := e.URL(path)
	if err != nil {
		end()
		return nil, err
	}
	return &target{endpoint: name, url: u, transport: e.Transport, close: end}, nil
}

// bare leads to u by the settings of an endpoint that says nothing but its URL.
func (sh *shell) bare(u *url.URL, w *watch) (*target, error) {
	opts := sh.options()
	opts.Doubt = w.doubt
	cfg := &config.Config{Endpoints: []config.Endpoint{config.Bare(u.Host, &url.URL{Scheme: u.Scheme, Host: u.Host})}}
	e, err := app.Open(cfg, u.Host, opts, w.observe)
	if err != nil {
		return nil, err
	}
	return &target{url: u, transport: e.Transport, close: e.Close}, nil
}

// schemeOf is the likely scheme where name is a host, which no endpoint can be
// called; else empty.
func schemeOf(name string) string {
	host := name[strings.LastIndexByte(name, '@')+1:]
	if !strings.ContainsAny(host, ".:") && host != "localhost" {
		return ""
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host == "localhost" || err == nil && !ip.IsGlobalUnicast() || err == nil && ip.IsPrivate() {
		return "http"
	}
	return "https"
}
