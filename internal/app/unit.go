package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
)

// unit is what an endpoint runs on.
type unit struct {
	spec      spec
	transport *heed.Transport
}

// spec is all that makes a unit what it is: two equal ones can be exchanged.
type spec struct {
	config.Endpoint
	secrets secrets
}

// secrets are the resolved references of an endpoint: a file behind one may
// have changed although the configuration did not.
type secrets struct{ value, user, password mask.Secret }

// close ends the renewal of the credential and the connections that are idle.
func (u *unit) close() {
	if u.transport.Token != nil {
		u.transport.Token.Close()
	}
	u.transport.CloseIdleConnections()
}

// release closes the units of old that are not kept.
func release(old, kept map[string]*unit) {
	for name, u := range old {
		if kept[name] != u {
			u.close()
		}
	}
}

// inherit has units that take the place of others respect what the server has
// told these, where it is the same server and the same credential.
func inherit(units, old map[string]*unit) {
	for name, u := range units {
		was := old[name]
		if was == nil || was == u {
			continue
		}
		if a, b := &u.spec, &was.spec; a.URL.String() == b.URL.String() && a.secrets == b.secrets && reflect.DeepEqual(a.Auth, b.Auth) {
			u.transport.Inherit(was.transport)
		}
	}
}

// settings builds what the gateway serves. Units of old that did not change
// are taken over. All problems are reported at once, and then nothing is kept.
func (a *App) settings(cfg *config.Config, old map[string]*unit) (gateway.Settings, map[string]*unit, error) {
	s := gateway.Settings{
		Version: a.opts.Version, Metrics: a.observe.Handler(), Log: a.observe.Logger(),
		Bounds: gateway.Bounds(cfg.Bounds), Later: a.queue.later(), Roads: a,
	}
	m := a.maker(cfg)
	units := make(map[string]*unit, len(cfg.Endpoints))
	var errs []error
	for i := range cfg.Endpoints {
		e := &cfg.Endpoints[i]
		u, err := m.unit(e, old[e.Name])
		if err == nil && u != old[e.Name] && a.healing.slows(e.Name) { // it goes on being recovered
			u, err = m.slow(e)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		units[e.Name] = u
		s.Endpoints = append(s.Endpoints, served(e, u))
	}
	for i, c := range cfg.Clients {
		secret, err := m.secret(fmt.Sprintf("clients[%d].token", i), c.Token)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.Clients = append(s.Clients, gateway.Client{
			Name: c.Name, Token: gateway.DigestOf(secret), Endpoints: c.Endpoints, Methods: c.Methods, NoAsync: c.NoAsync,
		})
	}
	if cfg.Listen.AdminToken != "" {
		secret, err := m.secret("listen.admin_token", cfg.Listen.AdminToken)
		if err != nil {
			errs = append(errs, err)
		}
		s.Admin = gateway.DigestOf(secret)
	}
	if len(errs) > 0 {
		release(units, old)
		return s, nil, errors.Join(errs...)
	}
	return s, units, nil
}

// slow makes a unit with less of everything, for the time of a recovery. To a
// reload that does not change the endpoint it is the same as one without.
func (m *maker) slow(e *config.Endpoint) (*unit, error) {
	changed := *e
	slower(&changed.Policy)
	u, err := m.unit(&changed, nil)
	if err == nil {
		u.spec.Endpoint = plain(*e)
	}
	return u, err
}

// maker makes units that call through the guard and are observed.
func (a *App) maker(cfg *config.Config) *maker {
	return &maker{cfg: cfg, getenv: a.opts.Getenv, readFile: a.opts.ReadFile, observe: a.see, base: a.base, doubt: logDoubts(a.observe.Logger())}
}

// see is told every step of every call.
func (a *App) see(e heed.Event) {
	a.observe.Observe(e)
	a.queue.see(&e)
	a.healing.see(&e)
}

func served(e *config.Endpoint, u *unit) gateway.Endpoint {
	g := gateway.Endpoint{
		Name: e.Name, URL: e.URL, Transport: u.transport,
		Passthrough:  e.Auth.Kind == config.AuthPassthrough,
		RewriteLinks: e.RewriteLinks, FollowSameOrigin: e.FollowSameOrigin, ForceQuery: e.ForceQuery,
	}
	if e.Auth.Kind == config.AuthQuery {
		g.SecretQuery = e.Auth.Query
	}
	g.Async = gateway.Async{
		Methods: e.Async.Methods, Enqueue: e.Async.OnOpen == config.AsyncOpenEnqueue, Expiry: e.Async.Expiry,
		RequireKey: e.Async.Key == config.AsyncKeyRequired, DeriveKey: e.Async.Key == config.AsyncKeyDerived,
		Durable: e.Async.Waiting == config.AsyncQueued, Pass: e.Async.Prefer == config.AsyncPreferPass,
	}
	return g
}

// base opens the connections of an endpoint. It asks no proxy of the
// environment: behind one, nobody could tell where a connection goes. Answers
// are passed on as they are encoded.
func (a *App) base(e *config.Endpoint) *http.Transport {
	t := e.Policy.WithDefaults().Timeouts
	guard := &gateway.Dialer{
		Endpoint: e.Name, Networks: e.Networks, Own: a.own, Resolve: a.opts.Resolve, Timeout: t.Connect,
	}
	return &http.Transport{
		// net/http asks before it takes a connection, each time: the last
		// moment to put on disk that a call of the queue is begun.
		Proxy:                  func(r *http.Request) (*url.URL, error) { return nil, queue.Begin(r.Context()) },
		DialContext:            guard.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    t.Connect,
		ResponseHeaderTimeout:  t.Header,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true,
	}
}

// plain returns e with the paths of its JSON rules as text: compiled ones
// from two readings of one file are never equal.
func plain(e config.Endpoint) config.Endpoint {
	rules := make([]classify.Rule, len(e.Rules))
	for i, r := range e.Rules {
		list := make([]classify.JSONMatch, len(r.When.JSON))
		for j, m := range r.When.JSON {
			m.Path = named(m.Path)
			list[j] = m
		}
		r.When.JSON = list
		r.Wait.Source = readable(r.Wait.Source)
		or := make([]classify.Source, len(r.Wait.Or))
		for j, s := range r.Wait.Or {
			or[j] = readable(s)
		}
		r.Wait.Or = or
		rules[i] = r
	}
	e.Rules = rules
	return e
}

// readable is s with its paths as text.
func readable(s classify.Source) classify.Source {
	s.Path = named(s.Path)
	vars := make(map[string]classify.Selector, len(s.Vars))
	for name, path := range s.Vars {
		vars[name] = named(path)
	}
	s.Vars = vars
	return s
}

// text stands for a compiled path.
type text string

// Select implements classify.Selector; nothing is ever selected with it.
func (text) Select(any) []any { return nil }

func named(s classify.Selector) classify.Selector {
	if t, ok := s.(fmt.Stringer); ok {
		return text(t.String())
	}
	return s
}
