package sim

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/sim/rate"
)

// Pack is one provider: its operations, its dialect, its limits. It is data
// and functions without state; what an operation remembers lies in the case.
type Pack struct {
	// Name is one lower-case word. Requests whose path begins with /NAME/ go to
	// this pack, with that prefix taken away.
	Name string
	// Hosts are names, such as api.stripe.com, under which it is reached too.
	Hosts []string
	// Dialect is how it writes what is not an operation's own answer.
	Dialect Dialect
	// Limits are its rate limits, unless World.Limits or World.Rate gives others.
	Limits []rate.Limit
	// LimitBy returns by what a limit of the scope Custom counts apart, beside the
	// credential: the model that the body names, for one. Default: by nothing.
	LimitBy func(*Exchange, *rate.Limit) string
	// Operations are tried in order; the first that matches counts.
	Operations []Operation
	// Credential returns whose request it is. Default: X-Api-Key, else Authorization.
	Credential func(*http.Request) string
	// Access says for people which credential it takes and what it is refused
	// without, in one line.
	Access string
	// Authorize refuses a request that is not allowed in, with nil for one that
	// is. It runs before limits, and not for free operations. Optional.
	Authorize func(*Exchange) *Refusal
	// Expire makes the credential of the request invalid from now on, for the
	// step expire. Optional.
	Expire func(*Exchange)
	// Webhooks is how it tells of the events that its operations emit.
	Webhooks Webhooks
	// MaxBody bounds the body of a request, in bytes. Default 1 MiB.
	MaxBody int
	// Script returns the step for a request, in the words of ParseSteps, where
	// the script of the case has none for it: for providers that let a client
	// plan its failures. It runs alone in its case and may change what it keeps.
	// "": none. Optional.
	Script func(*Exchange) string
	// Golden names the file of provider/golden whose answers the step
	// golden(NAME) serves, or several with spaces between them. Default: Name.
	Golden string
}

// Operation is one thing a provider can do.
type Operation struct {
	// Route is a method and a path pattern such as "GET /v1/charges/{id}".
	Route string
	// Name is the logical name, such as charges.retrieve, in the journal and in
	// steps. Default: Route.
	Name string
	// When narrows the match, for APIs that tell operations apart by query or
	// body. Optional; it must only look.
	When func(*Exchange) bool
	// Do answers. It runs alone in its case, so it must not wait. What it reads
	// and changes is reached through the Exchange only.
	Do func(*Exchange) Answer
	// Cost is what weighted limits count. Default 1; CostOf, if set, decides.
	Cost   float64
	CostOf func(*Exchange) float64
	// Free operations pass no authorization, no limit, no failure by chance.
	Free bool
	// Keyed operations honour the idempotency key of the dialect.
	Keyed bool
}

// Kind is why a request is refused.
type Kind uint8

// The kinds, each with the status that it has by default.
const (
	BadRequest   Kind = iota // 400: parameters are missing or wrong
	Unauthorized             // 401: the credential is absent, wrong or expired
	Forbidden                // 403
	NotFound                 // 404: there is no such resource
	Conflict                 // 409: the resource is in another state
	Throttled                // 429: by a limit; Wait is how long
	Banned                   // 403: shut out after too many early requests
	Failed                   // 500
	Overloaded               // 503
	Unknown                  // 404: there is no such operation
	WrongMethod              // 405: but with another method there is
	TooLarge                 // 413: the body
	KeyMismatch              // 422: the idempotency key came with other parameters
	KeyInFlight              // 409: its first request is not answered yet
	KeyTooLong               // 400
)

var kindStatus = [...]int{400, 401, 403, 404, 409, 429, 403, 500, 503, 404, 405, 413, 422, 409, 400}

// Refusal is what a dialect puts into words.
type Refusal struct {
	Kind Kind
	// Status is the one to answer with, where a step asks for it; 0: the
	// dialect's own.
	Status int
	// Detail is a sentence for people. Field names the parameter at fault.
	Detail, Field string
	// Wait is how long the caller must stay away. 0: nothing is known.
	Wait time.Duration
	// Now tells, with a Wait of 0, that the caller is told to come again at once,
	// as by Retry-After: 0.
	Now bool
	// Date asks for the wait as a date, if the dialect has such a form.
	Date bool
	// Limit is the one that refused, if any.
	Limit *rate.Limit
	// Operations lists what there is, for Unknown and WrongMethod; Allow the
	// methods of the path.
	Operations, Allow []string
}

// StatusOr returns the status that was asked for, or d.
func (r Refusal) StatusOr(d int) int {
	if r.Status != 0 {
		return r.Status
	}
	return d
}

// DefaultStatus is the status that HTTP has for the kind.
func (k Kind) DefaultStatus() int { return kindStatus[k] }

// Dialect is how a provider writes what all providers have. A nil function
// means the plain form: problem+json, Retry-After, X-RateLimit-*.
type Dialect struct {
	// Refuse writes an error. It must handle every Kind; call Plain for the rest.
	Refuse func(*Exchange, Refusal) Answer
	// Quota adds what headers tell of the limits that counted the request.
	Quota func(*Answer, []rate.Told)
	// Tell does the same, in place of Quota, where the headers depend on the
	// clock or on the request. It has the case to itself.
	Tell func(*Exchange, *Answer, []rate.Told)
	// Envelope is an error inside a 200, for the step envelope.
	Envelope func(*Exchange) Answer
	// Keys says how idempotency keys work.
	Keys Keys
}

// Keys is how a provider treats idempotency keys.
type Keys struct {
	// Header carries the key. Default Idempotency-Key.
	Header string
	// MaxLength of a key. Default 255.
	MaxLength int
	// Window is how long an answer is kept at least. Default 24 h, on the clock
	// of the case.
	Window time.Duration
	// Saves tells whether an answer with this status is kept and given again.
	// Default: 2xx.
	Saves func(status int) bool
	// Replayed is a header field, name and value, of an answer given again.
	// Default: Idempotent-Replayed, true.
	Replayed [2]string
}

func (k Keys) withDefaults() Keys {
	if k.Header == "" {
		k.Header = "Idempotency-Key"
	}
	if k.MaxLength == 0 {
		k.MaxLength = 255
	}
	if k.Window == 0 {
		k.Window = 24 * time.Hour
	}
	if k.Saves == nil {
		k.Saves = func(status int) bool { return status/100 == 2 }
	}
	if k.Replayed[0] == "" {
		k.Replayed = [2]string{"Idempotent-Replayed", "true"}
	}
	return k
}

// pack is a Pack made ready.
type pack struct {
	Pack
	index      int
	operations []operation
	limits     []limit
	keys       Keys
	hooks      Webhooks
}

// operation is an Operation made ready.
type operation struct {
	Operation
	method  string
	pattern pattern
}

// limit is a rate.Limit made ready.
type limit struct {
	rate.Limit
	routes []route
}

// route is a method or *, and a pattern.
type route struct {
	method  string
	pattern pattern
}

func newRoute(text string) (route, error) {
	method, path, ok := strings.Cut(text, " ")
	r := route{method, newPattern(path)}
	if message, _ := r.pattern.fault(); !ok || message != "" {
		return r, fmt.Errorf("route %q is none: %s", text, cmp.Or(message, "a space and a path must follow the method"))
	}
	return r, nil
}

const routeRule = "write a method or *, a space and a path such as /v1/bibs/{id}"

func (r *route) match(method, path string) bool {
	var v values
	return (r.method == "*" || r.method == method) && r.pattern.match(path, &v)
}

// newPack checks p; limits, if not nil, replace its own.
func newPack(p Pack, index int, limits []rate.Limit) (*pack, error) {
	if p.Name == "" || strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, fmt.Errorf("pack %q: a name is lower-case letters, digits and hyphens", p.Name)
	}
	if limits == nil {
		limits = p.Limits
	}
	if p.MaxBody == 0 {
		p.MaxBody = maxBody
	}
	ready := &pack{Pack: p, index: index, keys: p.Dialect.Keys.withDefaults(), hooks: p.Webhooks.withDefaults()}
	for _, o := range p.Operations {
		r, err := newRoute(o.Route)
		if err != nil || o.Do == nil {
			return nil, fmt.Errorf("pack %s: operation %q: it needs a route and Do: %w", p.Name, o.Route, err)
		}
		if o.Name == "" {
			o.Name = o.Route
		}
		if o.Cost == 0 {
			o.Cost = 1
		}
		ready.operations = append(ready.operations, operation{o, r.method, r.pattern})
	}
	for _, l := range limits {
		one, err := newLimit(l)
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", p.Name, err)
		}
		ready.limits = append(ready.limits, one)
	}
	return ready, nil
}

func newLimit(l rate.Limit) (limit, error) {
	one := limit{Limit: l}
	if bad := l.Check(); bad != nil {
		return one, errors.New(bad[0].Message + "; " + bad[0].Remedy)
	}
	for _, text := range l.Routes {
		r, err := newRoute(text)
		if err != nil {
			return one, fmt.Errorf("limit %q: %w", l.Name, err)
		}
		one.routes = append(one.routes, r)
	}
	return one, nil
}

// find sets the operation of x and the values in its path.
func (p *pack) find(x *Exchange) {
	if x.lost {
		return
	}
	method := x.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range p.operations {
		o := &p.operations[i]
		if o.method != method && o.method != "*" || !o.pattern.match(x.Path, &x.values) {
			continue
		}
		x.operation = o
		if o.When == nil || o.When(x) {
			return
		}
		x.operation = nil
	}
}

// has tells whether some operation has this path and names its first segment,
// whatever the method.
func (p *pack) has(path string) bool {
	var v values
	for i := range p.operations {
		if o := &p.operations[i].pattern; o.segments[0].kind == plain && o.match(path, &v) {
			return true
		}
	}
	return false
}

// unknown is the refusal of what p cannot do; it says what it can.
func (p *pack) unknown(x *Exchange) Refusal {
	r := Refusal{Kind: Unknown, Detail: "there is no such operation"}
	if all := x.own.realm.packs; len(all) > 1 {
		names := make([]string, len(all))
		for i, o := range all {
			names[i] = "/" + o.Name + "/"
		}
		r.Detail += "; with " + strings.Join(names, ", ") + " before the path one pack alone is asked"
	}
	var v values
	for i := range p.operations {
		o := &p.operations[i]
		r.Operations = append(r.Operations, o.Route)
		if !x.lost && o.When == nil && o.pattern.match(x.Path, &v) {
			r.Allow = append(r.Allow, o.method)
		}
	}
	if r.Allow != nil {
		r.Kind, r.Detail = WrongMethod, "this path takes another method"
	}
	return r
}

func (p *pack) credential(r *http.Request) string {
	if p.Credential != nil {
		return p.Credential(r)
	}
	if k := r.Header.Get("X-Api-Key"); k != "" {
		return k
	}
	return r.Header.Get("Authorization")
}

// applies tells whether the limit counts this request.
func (l *limit) applies(method, path string) bool {
	if len(l.routes) == 0 {
		return true
	}
	for i := range l.routes {
		if l.routes[i].match(method, path) {
			return true
		}
	}
	return false
}
