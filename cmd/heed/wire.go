package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/token"
)

// options are what heed up brings along to the process: log lines go to stdout.
func (sh *shell) options() app.Options {
	return app.Options{Version: versionOf(), Out: sh.out, Getenv: sh.value, Grace: grace}
}

// value is the environment as the configuration asks for it.
func (sh *shell) value(name string) string {
	v, _ := sh.getenv(name)
	return v
}

func (sh *shell) secret(ref config.Secret) (mask.Secret, error) {
	if ref == "" {
		return "", nil
	}
	return ref.Resolve(sh.value, os.ReadFile)
}

// endpoint finds where endpoint/path leads by the configuration.
func (sh *shell) endpoint(where, file string, observe func(heed.Event)) (*target, error) {
	cfg, stop, err := sh.settings(file)
	if err != nil {
		return nil, err
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(where, "/"), "/")
	i := slices.IndexFunc(cfg.Endpoints, func(e config.Endpoint) bool { return e.Name == name })
	if i < 0 {
		stop()
		return nil, fmt.Errorf("there is no endpoint %q; the configuration has %s", name, namesOf(cfg))
	}
	e := &cfg.Endpoints[i]
	u, err := under(e, rest)
	if err == nil {
		var t *heed.Transport
		if t, err = sh.transport(e, observe); err == nil {
			return &target{endpoint: name, url: u, transport: t, close: func() { closeAll(t); stop() }}, nil
		}
	}
	stop()
	return nil, err
}

func closeAll(t *heed.Transport) {
	if t.Token != nil {
		t.Token.Close()
	}
	t.CloseIdleConnections()
}

func namesOf(cfg *config.Config) string {
	var names []string
	for _, e := range cfg.Endpoints {
		names = append(names, e.Name)
	}
	return strings.Join(names, ", ")
}

// under puts a relative reference below the URL of e, which it cannot leave.
func under(e *config.Endpoint, rest string) (*url.URL, error) {
	ref, err := url.Parse("/" + rest)
	if err != nil || ref.Host != "" {
		return nil, errors.New("what follows the endpoint must be a path, with a query if need be")
	}
	base := strings.TrimSuffix(e.URL.EscapedPath(), "/")
	u := e.URL.JoinPath("/", ref.EscapedPath())
	if base == "" { // JoinPath makes a relative path of it
		u.Path, u.RawPath = ref.Path, ref.RawPath
	}
	if path := u.EscapedPath(); path != base && !strings.HasPrefix(path, base+"/") {
		return nil, fmt.Errorf("the path leaves the endpoint %s", e.Name)
	}
	u.RawQuery = ref.RawQuery
	if len(e.ForceQuery) > 0 {
		q := u.Query()
		for k, v := range e.ForceQuery {
			q.Set(k, v)
		}
		u.RawQuery = q.Encode()
	}
	return u, nil
}

// transport makes the road of e for a single call. There is no guard on where
// it connects to: whoever runs the command may connect there without heed too.
func (sh *shell) transport(e *config.Endpoint, observe func(heed.Event)) (*heed.Transport, error) {
	p := e.Policy
	p.Endpoint = e.Name
	classifier, bad := classify.New(e.Rules)
	hints, more := hint.NewReader(e.Hints)
	var errs []error
	for _, b := range slices.Concat(p.Validate(), bad, more) {
		errs = append(errs, fmt.Errorf("endpoints.%s.%v", e.Name, b))
	}
	source, err := sh.credential(e)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return &heed.Transport{Policy: p, Classifier: classifier, Hints: hints, Token: source, Observe: observe}, nil
}

// credential makes the source of the credential of e; nil: it has none.
func (sh *shell) credential(e *config.Endpoint) (*token.Source, error) {
	a := &e.Auth
	value, err1 := sh.secret(a.Value)
	user, err2 := sh.secret(a.User)
	password, err3 := sh.secret(a.Password)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("endpoints.%s.auth: %w", e.Name, err)
	}
	issuer := e.URL
	if a.TokenURL != nil {
		issuer = a.TokenURL
	}
	src := &token.Source{Lifetime: a.Lifetime}
	switch a.Kind {
	case config.AuthHeader:
		return token.Static(a.Header, mask.Secret(a.Prefix)+value), nil
	case config.AuthQuery:
		return token.Query(a.Query, value), nil
	case config.AuthBasic:
		return token.Basic(user, password), nil
	case config.AuthOAuth2:
		src.Fetcher = token.ClientCredentials{TokenURL: issuer.String(), ID: user, Secret: password, Scopes: a.Scopes}
	case config.AuthSierra:
		if a.TokenURL == nil {
			issuer = e.URL.JoinPath("v6", "token")
		}
		src.Fetcher = token.Sierra{URL: issuer.String(), Key: user, Secret: password}
	case config.AuthFolio:
		src.Fetcher = &token.Folio{URL: issuer.String(), Tenant: a.Tenant, User: user, Password: password}
	default:
		return nil, nil
	}
	return src, nil
}
