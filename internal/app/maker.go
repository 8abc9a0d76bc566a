package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/token"
)

// maker makes units of endpoints. It is the one place where a configuration
// becomes a road.
type maker struct {
	cfg      *config.Config
	getenv   func(string) string
	readFile func(string) ([]byte, error)
	observe  func(heed.Event)                       // nil: nobody is told
	base     func(*config.Endpoint) *http.Transport // nil: the road's own, without a guard
	doubt    func(Doubt)                            // nil: facts in doubt are not told
}

// secret resolves the reference at path, which must hold something.
func (m *maker) secret(path string, ref config.Secret) (mask.Secret, error) {
	s, err := ref.Resolve(m.getenv, m.readFile)
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.cfg.Where(path), err)
	}
	if s == "" {
		return "", fmt.Errorf("%s: there is no secret", m.cfg.Where(path))
	}
	return s, nil
}

// unit builds the endpoint, or takes old over when it is the same.
func (m *maker) unit(e *config.Endpoint, old *unit) (*unit, error) {
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
			v, err := m.secret("endpoints."+e.Name+".auth."+s.key, s.ref)
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
	return m.build(e, want)
}

// build checks the endpoint as a whole and makes it.
func (m *maker) build(e *config.Endpoint, want spec) (*unit, error) {
	p := below(e.Policy, e.URL)
	p.Endpoint = e.Name
	if e.Async.OnOpen != "" { // whoever waits is answered at once, or enqueued
		p.Breaker.OnOpen = policy.OnOpenFail
	}
	classifier, bad := classify.New(e.Rules)
	reader, more := hint.NewReader(e.Hints)
	bad = append(append(p.Validate(), bad...), more...)
	if len(bad) > 0 {
		var errs []error
		for _, b := range bad {
			errs = append(errs, fmt.Errorf("endpoints.%s.%v", e.Name, b))
		}
		return nil, errors.Join(errs...)
	}
	var base http.RoundTripper
	if m.base != nil {
		base = m.base(e)
	}
	source, err := m.credential(e, want.secrets, base)
	if err != nil {
		return nil, err
	}
	if grade, doubt := e.Doubtful["limits"]; doubt && m.doubt != nil {
		m.doubt(Doubt{e.Name, "limits", grade})
	}
	return &unit{want, &heed.Transport{
		Base: base, Policy: p, Classifier: classifier, Hints: reader, Token: source, Observe: m.observer(e),
	}}, nil
}

// credential makes the source of the endpoint's credential. Its issuer is
// called through the same guard as the endpoint, if there is one.
func (m *maker) credential(e *config.Endpoint, s secrets, base http.RoundTripper) (*token.Source, error) {
	at := func(fallback string) string {
		if e.Auth.TokenURL != nil {
			return e.Auth.TokenURL.String()
		}
		return fallback
	}
	src := &token.Source{Lifetime: e.Auth.Lifetime, OnRenew: m.renewed(e.Name)}
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
			return nil, fmt.Errorf("endpoints.%s.auth.token_url: oauth2 needs the address of its token endpoint", e.Name)
		}
		src.Fetcher = token.ClientCredentials{TokenURL: at(""), ID: s.user, Secret: s.password, Scopes: e.Auth.Scopes, Via: base}
	case config.AuthSierra:
		src.Fetcher = token.Sierra{URL: at(e.URL.JoinPath("v6", "token").String()), Key: s.user, Secret: s.password, Via: base}
	case config.AuthFolio:
		src.Fetcher = &token.Folio{URL: at(e.URL.String()), Tenant: e.Auth.Tenant, User: s.user, Password: s.password, Via: base}
	default:
		return nil, fmt.Errorf("endpoints.%s.auth.kind: %q is not known", e.Name, e.Auth.Kind)
	}
	return src, nil
}

// renewed tells of a fetch that ended.
func (m *maker) renewed(endpoint string) func(token.Renewal) {
	if m.observe == nil {
		return nil
	}
	return func(r token.Renewal) {
		e := heed.Event{Kind: heed.TokenRenewed, Time: r.At, Endpoint: endpoint}
		if r.Err != nil {
			e.Reason = string(call.TokenFailed)
		}
		if failed, ok := errors.AsType[*token.Error](r.Err); ok {
			e.Status, e.Rule = failed.Status, failed.Why()
		}
		m.observe(e)
	}
}

// observer tells of the calls of e, and once of each rule that decided, or
// header that was believed, although nobody has verified it.
func (m *maker) observer(e *config.Endpoint) func(heed.Event) {
	if m.doubt == nil || len(e.Doubtful) == 0 {
		return m.observe
	}
	doubtful := e.Doubtful
	var told sync.Map // of rules and headers
	return func(ev heed.Event) {
		if m.observe != nil {
			m.observe(ev)
		}
		for _, fact := range [...]string{ev.Rule, ev.HintFrom} {
			grade, doubt := doubtful[fact]
			if !doubt || fact == "" {
				continue
			}
			if _, again := told.LoadOrStore(fact, true); !again {
				m.doubt(Doubt{ev.Endpoint, fact, grade})
			}
		}
	}
}

// Doubt is a fact in use that nobody has looked up: a rule, a header, or limits
// for those of the profile.
type Doubt struct {
	Endpoint, Fact string
	Grade          provider.Grade
}

// logDoubts writes doubts to log.
func logDoubts(log *slog.Logger) func(Doubt) {
	return func(d Doubt) {
		log.Warn("unverified fact used", slog.String("endpoint", d.Endpoint), slog.String("fact", d.Fact),
			slog.String("grade", string(d.Grade)),
			slog.String("advice", "compare it with the provider's documentation, then write it into heed.yaml with its source"))
	}
}

// below returns p with its globs for the whole path: in heed.yaml they are
// written for what stands below the URL of the endpoint.
func below(p policy.Policy, u *url.URL) policy.Policy {
	base := strings.TrimSuffix(u.Path, "/")
	if base == "" {
		return p
	}
	whole := func(glob string) string {
		if strings.HasPrefix(glob, "/") {
			return base + glob
		}
		return glob
	}
	p.Allow = slices.Clone(p.Allow)
	for i, a := range p.Allow {
		p.Allow[i].Path = whole(a.Path)
	}
	p.Limits.Groups = slices.Clone(p.Limits.Groups)
	for i, g := range p.Limits.Groups {
		p.Limits.Groups[i].Paths = slices.Clone(g.Paths)
		for j, glob := range g.Paths {
			p.Limits.Groups[i].Paths[j] = whole(glob)
		}
	}
	return p
}
