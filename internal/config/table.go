package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// file binds the whole of heed.yaml. Parse, Schema and Show all go by its
// table, so that they cannot differ.
type file struct {
	*Config
	defaults  entry
	endpoints sheet.Value
}

func (f *file) table() sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "version", Doc: "The version of the file format: 1.", Required: true, Value: version(&f.Version)},
		{Name: "listen", Doc: "Where the process can be reached.", Value: listenFields(&f.Listen)},
		{Name: "log", Doc: "What is written about calls.", Value: logFields(&f.Log)},
		{Name: "trace", Doc: "Where OpenTelemetry spans go.", Value: traceFields(&f.Trace)},
		{Name: "bounds", Doc: "What protects the gateway itself.", Value: boundFields(&f.Bounds)},
		{Name: "queue", Doc: "Where calls are kept that are answered later. Nothing: all callers wait.", Value: maybeQueue{&f.Queue}},
		{Name: "clients", Doc: "Who may use the data port, when it is not open to this host alone.", Value: sheet.List(&f.Clients, clientFields)},
		{Name: "defaults", Doc: "What holds for all endpoints. The numbers of a profile go before it, and the endpoint's own word before both.",
			Value: sheet.Block{Fields: f.defaults.shared()}},
		{Name: "endpoints", Doc: "The upstreams by name. /NAME/path on the data port goes to the path below url.",
			Required: true, Value: f.endpoints},
	}}
}

// one is the version of the format, the only one there is.
type one struct{ sheet.Value }

// Schema implements sheet.Value.
func (one) Schema() map[string]any { return map[string]any{"const": 1} }

func version(v *int) sheet.Value {
	return one{sheet.Parsed{
		Parse: func(text string) error {
			if text != "1" {
				return errors.New("this version of the file format is not known")
			}
			*v = 1
			return nil
		},
		Show:   func() (string, bool) { return strconv.Itoa(*v), true },
		Remedy: "write version: 1",
	}}
}

func listenFields(l *Listen) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "data", Doc: "Where programs send their calls, host:port or unix:/path. Default 127.0.0.1:8642.", Value: address(&l.Data)},
		{Name: "admin", Doc: "Where operators and Prometheus ask. Default 127.0.0.1:8643.", Value: address(&l.Admin)},
		{Name: "admin_token", Doc: "What the admin port asks for. Needed when it is open to other hosts.", Value: secret(&l.AdminToken)},
	}}
}

func address(a *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if path, ok := strings.CutPrefix(text, "unix:"); ok {
				if !strings.HasPrefix(path, "/") {
					return errors.New("behind unix: stands no absolute path")
				}
				*a = text
				return nil
			}
			_, port, err := net.SplitHostPort(text)
			if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n > 65535 {
				return fmt.Errorf("%q is not host:port", text)
			}
			*a = text
			return nil
		},
		Show:    func() (string, bool) { return *a, *a != "" },
		Remedy:  "write host:port or unix:/path, such as 127.0.0.1:8642",
		Pattern: `^(.*:[0-9]{1,5}|unix:/.*)$`,
		Example: "127.0.0.1:8642",
	}
}

// reach tells whether other hosts can reach an address.
func reach(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return false
	}
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !ip.Unmap().IsLoopback())
}

func logFields(l *Log) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "level", Doc: "Default info.", Value: sheet.OneOf(&l.Level, "debug", "info", "warn", "error")},
		{Name: "format", Doc: "Default json.", Value: sheet.OneOf(&l.Format, "json", "text")},
		{Name: "attempts", Doc: "Which attempts get a line. Default all.", Value: sheet.OneOf(&l.Attempts, "all", "retried", "none")},
		{Name: "calls", Doc: "Which calls get a line. Default all.", Value: sheet.OneOf(&l.Calls, "all", "retried", "none")},
	}}
}

func traceFields(t *Trace) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "otlp", Doc: "OTLP over HTTP. Nothing: no spans are sent.", Value: sheet.Parsed{
			Parse: func(text string) error {
				u, err := parseURL(text)
				if err == nil {
					t.Endpoint = u.String()
				}
				return err
			},
			Show:    func() (string, bool) { return t.Endpoint, t.Endpoint != "" },
			Remedy:  "write a URL such as http://127.0.0.1:4318",
			Pattern: "^https?://",
			Example: "http://127.0.0.1:4318",
		}},
		{Name: "sample", Doc: "The part of calls that is traced. Default 1.", Value: sheet.Float(&t.Sample, 0, 1)},
	}}
}

func boundFields(b *Bounds) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "header", Doc: "The header of a request. Default 64KiB.", Value: sheet.Size(&b.HeaderBytes, false)},
		{Name: "body", Doc: "The body of a request. Default 1GiB.", Value: sheet.Size(&b.BodyBytes, false)},
		{Name: "answer", Doc: "The body of an answer. 0: unbounded. Default 0.", Value: sheet.Size(&b.AnswerBytes, true)},
		{Name: "calls", Doc: "Calls at once. Default 4096.", Value: sheet.Int(&b.Calls, 1)},
	}}
}

func clientFields(c *Client) sheet.Value {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "name", Doc: "Who it is, for logs.", Required: true, Value: name(&c.Name)},
		{Name: "token", Doc: "What the client sends as Authorization: Bearer.", Required: true, Value: secret(&c.Token)},
		{Name: "endpoints", Doc: "The endpoints it may use. Nothing: all.", Value: sheet.Texts(&c.Endpoints)},
		{Name: "methods", Doc: "The methods it may use, of which GET includes HEAD. Nothing: all.", Value: provider.Methods(&c.Methods)},
		{Name: "async", Doc: "Whether its calls may be answered later. Default yes.", Value: sheet.Switch(&c.NoAsync, "yes", "no")},
	}}
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

func checkName(text string) error {
	if !namePattern.MatchString(text) {
		return errors.New("a name has up to 63 lower case letters, digits, _ and -, and begins with a letter or digit")
	}
	return nil
}

func name(s *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			err := checkName(text)
			if err == nil {
				*s = text
			}
			return err
		},
		Show:    func() (string, bool) { return *s, *s != "" },
		Remedy:  "write a name such as nightly-etl",
		Pattern: namePattern.String(),
		Numeric: true,
	}
}

// entry binds one endpoint.
type entry struct {
	e *Endpoint
	t *provider.Terms
}

func (x entry) fields() []sheet.Field {
	return append([]sheet.Field{
		{Name: "url", Doc: "Scheme, host, optional port and base path of the upstream.", Required: true, Value: link(&x.e.URL)},
		{Name: "profile", Doc: "What is known of the provider: a built-in name, or the path of a profile of one's own from the folder of this file. Default generic.", Value: profileName{&x.e.Profile}},
		{Name: "auth", Doc: "The credential, by reference.", Value: authFields(&x.e.Auth)},
	}, x.shared()...)
}

// shared are the fields that defaults has too.
func (x entry) shared() []sheet.Field {
	return append(x.t.Fields(),
		sheet.Field{Name: "networks", Doc: "Address ranges that would otherwise be refused (private, loopback, link-local) and may be dialed.",
			Value: sheet.List(&x.e.Networks, network)},
		sheet.Field{Name: "links", Doc: "Whether absolute links back to the provider lead through the gateway. Default keep.",
			Value: sheet.Switch(&x.e.RewriteLinks, "keep", "rewrite")},
		sheet.Field{Name: "redirects", Doc: "Whether redirects of safe requests within the origin are followed. Default return.",
			Value: sheet.Switch(&x.e.FollowSameOrigin, "return", "same-origin")},
		sheet.Field{Name: "async", Doc: "What is answered later; needs queue.", Value: asyncFields(&x.e.Async)})
}

func network(p *netip.Prefix) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			v, err := netip.ParsePrefix(text)
			if ip, bad := netip.ParseAddr(text); bad == nil && ip.Zone() == "" {
				v, err = netip.PrefixFrom(ip, ip.BitLen()), nil
			}
			if err != nil {
				return fmt.Errorf("%q is not a range of addresses", text)
			}
			if v != v.Masked() {
				return fmt.Errorf("%q has bits set behind its length; %v is meant", text, v.Masked())
			}
			*p = v
			return nil
		},
		Show:    func() (string, bool) { return p.String(), true },
		Remedy:  "write a range such as 10.0.0.0/8 or fd00::/8",
		Example: "10.0.0.0/8",
	}
}

func link(u **url.URL) sheet.Value {
	return linkLike(u, parseURL, "^https?://[^?#@]+$", "https://ils.example.org/iii/sierra-api")
}

// tokenURL may have a query (RFC 6749 §3.2), and no credential in it (§2.3.1).
func tokenURL(u **url.URL) sheet.Value {
	return linkLike(u, func(text string) (*url.URL, error) {
		bare, raw, asked := strings.Cut(text, "?")
		u, err := parseURL(bare)
		if err != nil || !asked {
			return u, err
		}
		query, err := url.ParseQuery(raw)
		if err != nil || strings.Contains(raw, "#") {
			return nil, errors.New("the query of the URL cannot be read")
		}
		for key := range query {
			if slices.Contains(credentials, strings.ToLower(key)) {
				return nil, errors.New("the query of the URL holds a credential, which belongs under auth")
			}
		}
		u.RawQuery = raw
		return u, nil
	}, "^https?://[^?#@]+([?][^#]*)?$", "https://login.example.org/token?tenant=main")
}

// credentials are parameters of RFC 6749 and its kin that must not be told.
var credentials = []string{"client_secret", "password", "access_token", "refresh_token", "assertion", "client_assertion",
	"code", "token", "secret", "key", "api_key", "apikey"}

func linkLike(u **url.URL, parse func(string) (*url.URL, error), pattern, example string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) (err error) {
			*u, err = parse(text)
			return err
		},
		Show: func() (string, bool) {
			if *u == nil {
				return "", false
			}
			return (*u).String(), true
		},
		Remedy:  "write it as in " + example,
		Pattern: pattern,
		Example: example,
	}
}

// parseURL never quotes what it was given: a URL can hold a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("this is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL does not begin with http:// or https://")
	case u.User != nil:
		return nil, errors.New("the URL holds a user or a password, which belong under auth")
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return nil, errors.New("the URL has a query or a fragment, which belong to the request")
	case strings.Contains(u.Path+"/", "/../") || strings.Contains(u.Path+"/", "/./"):
		return nil, errors.New("the path of the URL has dot segments")
	case strings.ContainsAny(u.Hostname(), " *\\") || u.Port() == "" && strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("the host of the URL is not one")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("the port of the URL is not from 1 to 65535")
		}
	}
	return u, nil
}
