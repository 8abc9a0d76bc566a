// Package config turns heed.yaml into the settings of each room.
//
// Load reads strictly: an unknown key, a wrong type, a bad value are problems,
// and every one of them is reported at once with file, line, column, path and
// remedy. Parsing has no side effects: secrets stay references (env:, file:)
// until Resolve is called. Lint warns about settings that are valid and do not
// fit together.
package config

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// Config is a whole heed.yaml.
type Config struct {
	// Version is the version of the file format: 1.
	Version int
	// File is where it was read from; empty for the built-in demo.
	File string

	Listen Listen
	Log    Log
	Trace  Trace
	Bounds Bounds
	// Queue keeps the calls that are answered later. nil: there is none.
	Queue *Queue
	// Clients are who may use the data port when it is not loopback-only.
	Clients   []Client
	Endpoints []Endpoint
	// Profiles are those of the user's own, by the path that endpoints name.
	Profiles map[string]provider.Profile

	read *sheet.Reader // knows where everything stands; nil: nothing was read
}

// Warn warns of the setting at path, with its place in the file.
func (c *Config) Warn(path, remedy, message string) Warning {
	w := Warning{File: c.File, Path: path, Message: message, Remedy: remedy}
	if c.read != nil {
		n, _ := c.read.Place(path)
		w.Line, w.Column = n.Line, n.Column
	}
	return w
}

// Where is the place in the file of the setting at path, and its path, as they
// stand before what is said about it.
func (c *Config) Where(path string) string {
	return strings.TrimSuffix(c.Warn(path, "", "").String(), ": ")
}

// Listen is where the process can be reached. An address is host:port or
// unix:/path.
type Listen struct {
	Data  string // default 127.0.0.1:8642
	Admin string // default 127.0.0.1:8643
	// AdminToken is required when Admin is neither loopback nor a socket.
	AdminToken Secret
}

// Log is what is written about calls.
type Log struct {
	Level  string // debug, info, warn, error; default info
	Format string // json or text; default json
	// Attempts says which attempts get a line: all, retried or none. Default all.
	Attempts string
	// Calls says which calls get a line: all, retried or none. Default all.
	Calls string
}

// Trace sends OpenTelemetry spans when Endpoint is set.
type Trace struct {
	Endpoint string // OTLP over HTTP, such as http://127.0.0.1:4318
	Sample   float64
}

// Bounds protect the gateway itself.
type Bounds struct {
	HeaderBytes int   // of a request; default 64 KiB
	BodyBytes   int64 // of a request; default 1 GiB
	AnswerBytes int64 // of an answer; 0: unbounded
	Calls       int   // at once; default 4096
}

// Client is a holder of a token for the data port.
type Client struct {
	Name      string
	Token     Secret
	Endpoints []string // empty: all
	Methods   []string // empty: all; GET includes HEAD
	// NoAsync keeps the client's calls out of the queue.
	NoAsync bool
}

// Endpoint is one named upstream with its policy.
type Endpoint struct {
	Name    string
	URL     *url.URL // scheme, host, optional port and base path
	Profile string   // a built-in name, or a path; its rules and hints are already merged in
	Policy  policy.Policy
	Rules   []classify.Rule // the endpoint's own first, then the profile's
	Hints   []hint.Source   // the endpoint's own first, then the profile's; nil: the standard ones
	Auth    Auth
	// Doubtful names the rules, the headers (in canonical form) and, as limits,
	// the limits that are graded general or unverified: nobody has looked them
	// up.
	Doubtful map[string]provider.Grade
	// Networks are address ranges that would otherwise be refused
	// (private, link-local, loopback) and may be dialed for this endpoint.
	Networks []netip.Prefix
	// RewriteLinks turns absolute links back to the provider into links
	// through the gateway.
	RewriteLinks bool
	// FollowSameOrigin follows redirects of safe requests within the origin.
	FollowSameOrigin bool
	// ForceQuery sets request parameters (WMS EXCEPTIONS=XML).
	ForceQuery map[string]string
	// HealthyP99 is the measured latency of healthy answers, for Lint.
	HealthyP99 time.Duration
	Async      Async
}

// AuthKind names how an endpoint is authenticated.
type AuthKind string

// The kinds.
const (
	AuthNone        AuthKind = "none"
	AuthPassthrough AuthKind = "passthrough" // the caller's own Authorization and Cookie
	AuthHeader      AuthKind = "header"
	AuthQuery       AuthKind = "query"
	AuthBasic       AuthKind = "basic"
	AuthOAuth2      AuthKind = "oauth2" // client credentials
	AuthSierra      AuthKind = "sierra"
	AuthFolio       AuthKind = "folio"
)

// Auth is the credential of an endpoint, by reference.
type Auth struct {
	Kind     AuthKind
	Header   string // AuthHeader: default Authorization
	Prefix   string // AuthHeader: put before the value, such as "apikey "
	Query    string // AuthQuery: name of the parameter
	Value    Secret
	User     Secret
	Password Secret
	TokenURL *url.URL
	Scopes   []string
	Tenant   string        // AuthFolio: X-Okapi-Tenant
	Lifetime time.Duration // where the issuer does not say; 0: 60 min for sierra
}

// Secret is a reference to a secret: env:NAME, file:/path, or, for tests,
// value:text. It prints as the reference, never as the secret.
type Secret string
