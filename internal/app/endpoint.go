package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
)

// Endpoint is the road to one endpoint, for a program that makes its own calls
// instead of sending them through a gateway. Close ends it.
type Endpoint struct {
	Transport *heed.Transport
	unit      *unit
	served    gateway.Endpoint
}

// Open makes the road to the endpoint called name, by the same settings that
// the gateway would serve it with. observe is told every step; nil: nobody is.
// There is no guard on where it connects to: whoever runs the program may
// connect there without heed too.
func Open(cfg *config.Config, name string, opts Options, observe func(heed.Event)) (*Endpoint, error) {
	opts = opts.withDefaults()
	var names []string
	for i := range cfg.Endpoints {
		e := &cfg.Endpoints[i]
		if e.Name != name {
			names = append(names, e.Name)
			continue
		}
		m := &maker{cfg: cfg, getenv: opts.Getenv, readFile: opts.ReadFile, observe: observe, doubt: opts.Doubt}
		u, err := m.unit(e, nil)
		if err != nil {
			return nil, err
		}
		return &Endpoint{u.transport, u, served(e, u)}, nil
	}
	return nil, fmt.Errorf("there is no endpoint %q; %s has %s", name, cmp.Or(cfg.File, "the demo"), strings.Join(names, ", "))
}

// URL is where path below the endpoint leads. It is a path, with a query if
// need be, and cannot leave the endpoint; empty is the endpoint itself.
func (e *Endpoint) URL(path string) (*url.URL, error) {
	ref, err := url.Parse(path)
	if err != nil || ref.Scheme != "" || ref.Host != "" {
		return nil, errors.New("what follows the endpoint must be a path, with a query if need be")
	}
	return e.served.Target(ref.EscapedPath(), ref.RawQuery)
}

// Close ends the renewal of the credential and the connections that are idle.
func (e *Endpoint) Close() { e.unit.close() }
