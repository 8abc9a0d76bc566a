package app

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/token"
)

// unit is what an endpoint runs on.
type unit struct {
	spec      spec
	transport *heed.Transport
	token     *token.Source // nil: none
	base      *http.Transport
}

// spec is all that makes a unit what it is: two equal ones can be exchanged.
type spec struct {
	config.Endpoint
	secrets secrets
}

// secrets are the resolved references of an endpoint: a file behind one may
// have changed although the configuration did not.
type secrets struct{ value, user, password mask.Secret }

func release(old, kept map[string]*unit) {
	for name, u := range old {
		if kept[name] == u {
			continue
		}
		if u.token != nil {
			u.token.Close()
		}
		u.base.CloseIdleConnections()
	}
}

// settings builds what the gateway serves. Units of old that did not change
// are taken over. All problems are reported at once, and then nothing is kept.
func (a *App) settings(cfg *config.Config, old map[string]*unit) (gateway.Settings, map[string]*unit, error) {
	s := gateway.Settings{
		Version: a.opts.Version, Metrics: a.observe.Handler(), Log: a.observe.Logger(),
		Bounds: gateway.Bounds(cfg.Bounds),
	}
	units := make(map[string]*unit, len(cfg.Endpoints))
	var errs []error
	for i := range cfg.Endpoints {
		e := &cfg.Endpoints[i]
		u, err := a.unit(e, old[e.Name])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		units[e.Name] = u
		s.Endpoints = append(s.Endpoints, served(e, u))
	}
	for _, c := range cfg.Clients {
		secret, err := a.secret("clients."+c.Name+".token", c.Token)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.Clients = append(s.Clients, gateway.Client{
			Name: c.Name, Token: gateway.DigestOf(secret), Endpoints: c.Endpoints, Methods: c.Methods,
		})
	}
	if cfg.Listen.AdminToken != "" {
		secret, err := a.secret("listen.admin_token", cfg.Listen.AdminToken)
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

func served(e *config.Endpoint, u *unit) gateway.Endpoint {
	g := gateway.Endpoint{
		Name: e.Name, URL: e.URL, Transport: u.transport,
		Passthrough:  e.Auth.Kind == config.AuthPassthrough,
		RewriteLinks: e.RewriteLinks, FollowSameOrigin: e.FollowSameOrigin, ForceQuery: e.ForceQuery,
	}
	if e.Auth.Kind == config.AuthQuery {
		g.SecretQuery = e.Auth.Query
	}
	return g
}

// secret resolves a reference that must hold something.
func (a *App) secret(key string, ref config.Secret) (mask.Secret, error) {
	s, err := ref.Resolve(a.opts.Getenv, a.opts.ReadFile)
	if err != nil {
		return "", fmt.Errorf("app: %s: %w", key, err)
	}
	if s == "" {
		return "", fmt.Errorf("app: %s: the secret behind %s is empty", key, ref)
	}
	return s, nil
}

// unit builds the endpoint, or takes old over when it is the same.
func (a *App) unit(e *config.Endpoint, old *unit) (*unit, error) {
	want := spec{Endpoint: plain(*e)}
	var errs []error
	for _, s := range []struct {
		key string
		ref config.Secret
		to  *mask.Secret
	}{
		{"value", e.Auth.Value, &want.secrets.value},
		{"user", e.Auth.User, &want.secrets.user},
		{"password", e.Auth.Password, &want.secrets.password},
	} {
		if s.ref != "" {
			v, err := a.secret("endpoints."+e.Name+".auth."+s.key, s.ref)
			errs = append(errs, err)
			*s.to = v
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if old != nil && reflect.DeepEqual(old.spec, want) {
		return old, nil
	}
	return a.build(e, want)
}

func (a *App) build(e *config.Endpoint, want spec) (*unit, error) {
	p := e.Policy
	p.Endpoint = e.Name
	classifier, bad := classify.New(e.Rules)
	reader, more := hint.NewReader(e.Hints)
	bad = append(append(p.Validate(), bad...), more...)
	if len(bad) > 0 {
		var errs []error
		for _, b := range bad {
			errs = append(errs, fmt.Errorf("app: endpoints.%s.%v", e.Name, b))
		}
		return nil, errors.Join(errs...)
	}
	u := &unit{spec: want, base: a.base(e)}
	var err error
	if u.token, err = a.credential(e, want.secrets, u.base); err != nil {
		return nil, err
	}
	u.transport = &heed.Transport{
		Base: u.base, Policy: p, Classifier: classifier, Hints: reader, Token: u.token, Observe: a.observe.Observe,
	}
	return u, nil
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

// credential makes the source of the endpoint's credential. Its issuer is
// called through the same guard as the endpoint.
func (a *App) credential(e *config.Endpoint, s secrets, base *http.Transport) (*token.Source, error) {
	at := func(fallback string) string {
		if e.Auth.TokenURL != nil {
			return e.Auth.TokenURL.String()
		}
		return fallback
	}
	src := &token.Source{Lifetime: e.Auth.Lifetime, OnRenew: a.renewed(e.Name)}
	switch e.Auth.Kind {
	case config.AuthNone, config.AuthPassthrough, "":
		return nil, nil
	case config.AuthHeader:
		return token.Static(e.Auth.Header, mask.Secret(e.Auth.Prefix)+s.value), nil
	case config.AuthQuery:
		return token.Query(e.Auth.Query, s.value), nil
	case config.AuthBasic:
		return token.Basic(s.user, s.password), nil
	case config.AuthOAuth2:
		if e.Auth.TokenURL == nil {
			return nil, fmt.Errorf("app: endpoints.%s.auth.token_url: oauth2 needs the address of its token endpoint", e.Name)
		}
		src.Fetcher = token.ClientCredentials{TokenURL: at(""), ID: s.user, Secret: s.password, Scopes: e.Auth.Scopes, Via: base}
	case config.AuthSierra:
		src.Fetcher = token.Sierra{URL: at(e.URL.JoinPath("v6", "token").String()), Key: s.user, Secret: s.password, Via: base}
	case config.AuthFolio:
		src.Fetcher = &token.Folio{URL: at(e.URL.String()), Tenant: e.Auth.Tenant, User: s.user, Password: s.password, Via: base}
	default:
		return nil, fmt.Errorf("app: endpoints.%s.auth.kind: %q is not known", e.Name, e.Auth.Kind)
	}
	return src, nil
}

// renewed tells of a fetch that ended.
func (a *App) renewed(endpoint string) func(token.Renewal) {
	return func(r token.Renewal) {
		e := heed.Event{Kind: heed.TokenRenewed, Time: r.At, Endpoint: endpoint}
		if r.Err != nil {
			e.Reason = string(call.TokenFailed)
		}
		a.observe.Observe(e)
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
		r.Wait.Path = named(r.Wait.Path)
		rules[i] = r
	}
	e.Rules = rules
	return e
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
