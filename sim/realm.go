package sim

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// realm is a World made ready: what the cases that live in it share.
type realm struct {
	world World
	packs []*pack
	hosts bool // some pack has a host
	steps Steps
	own   map[string]Steps // of the cases that have their own

	courier http.RoundTripper
}

// courier is shared, so that connections are. It obeys no proxy of the
// environment: what it is told stays where it is told to go.
var courier = &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second}

func newRealm(w World) (*realm, error) {
	w = w.withDefaults()
	if err := w.check(); err != nil {
		return nil, err
	}
	for i, l := range w.Limits {
		if _, err := newLimit(l); err != nil {
			return nil, fmt.Errorf("sim: %w", &ItemError{"limits", i, err.Error()})
		}
	}
	a := &realm{world: w, own: map[string]Steps{}, courier: w.Courier}
	if a.courier == nil {
		a.courier = courier
	}
	if err := a.takePacks(); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	if err := a.takeSteps(); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	for i := range w.Webhooks {
		if err := w.Webhooks[i].check(a); err != nil {
			return nil, fmt.Errorf("sim: %w", &ItemError{"webhooks", i, err.Error()})
		}
	}
	if len(w.Begin) == 0 {
		return a, nil
	}
	trial := newCase(a, "")
	defer trial.end()
	trial.clear()
	if err := trial.play(); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return a, nil
}

// takePacks makes the packs of the world ready.
func (a *realm) takePacks() error {
	for i, p := range a.world.Packs {
		ready, err := newPack(p, i, a.world.limits())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(a.packs, func(o *pack) bool { return o.Name == p.Name }) {
			return fmt.Errorf("pack %s is there twice; name it once", p.Name)
		}
		a.packs = append(a.packs, ready)
		a.hosts = a.hosts || len(p.Hosts) > 0
	}
	return nil
}

// takeSteps reads the scripts of the world, which name what the packs have.
func (a *realm) takeSteps() (err error) {
	if a.steps, err = a.parse(a.world.Steps); err != nil {
		return err
	}
	for id, text := range a.world.CaseSteps {
		if !validCase(id) {
			return fmt.Errorf("case %q: %s", id, caseRule)
		}
		if a.own[id], err = a.parse(text); err != nil {
			return fmt.Errorf("case %s: %w", id, err)
		}
	}
	return nil
}

// parse reads a script and looks up what it names in the packs.
func (a *realm) parse(text string) (Steps, error) {
	s, err := ParseSteps(text)
	if err != nil {
		return s, err
	}
	return s, a.resolve(&s)
}

// address finds the case of r: in the path, the header or the host. The path
// is what follows the case.
func (a *realm) address(r *http.Request) (id, path string) {
	path = r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/t/"); ok {
		id, _, _ = strings.Cut(rest, "/")
		return id, rest[len(id):]
	}
	if id = r.Header.Get("Sim-Case"); id != "" {
		return id, path
	}
	if !a.hosts && !strings.Contains(r.Host, ".localhost") {
		return "", path
	}
	host := hostOf(r)
	if id, ok := strings.CutSuffix(host, ".localhost"); ok {
		return id, path
	}
	for _, p := range a.packs {
		for _, h := range p.Hosts {
			if id, ok := strings.CutSuffix(host, "."+h); ok {
				return id, path
			}
		}
	}
	return "", path
}

func hostOf(r *http.Request) string {
	if name, _, err := net.SplitHostPort(r.Host); err == nil {
		return name
	}
	return r.Host
}

// route finds the pack that r is for: by host, by the first word of the path,
// or by who has such an operation; the first pack takes the rest.
func (a *realm) route(r *http.Request, path string) (*pack, string) {
	if a.hosts {
		host := hostOf(r)
		for _, p := range a.packs {
			for _, h := range p.Hosts {
				if host == h || strings.HasSuffix(host, "."+h) {
					return p, path
				}
			}
		}
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, p := range a.packs {
		if p.Name == first {
			return p, "/" + rest
		}
	}
	if p := a.owner(path); p != nil {
		return p, path
	}
	return a.packs[0], path
}

// owner is the first pack that has an operation with this path, nil if none
// has. Operations whose paths begin with a name in braces, which would claim
// those of everybody, count last.
func (a *realm) owner(path string) *pack {
	if len(a.packs) == 1 {
		return a.packs[0]
	}
	var greedy *pack
	for _, p := range a.packs {
		has, named := p.has(path)
		if named {
			return p
		}
		if has && greedy == nil {
			greedy = p
		}
	}
	return greedy
}

// route finds the pack of x in a realm, and by it who calls.
func (x *Exchange) route(a *realm, path string) {
	x.pack, x.Path = a.route(x.Request, path)
	x.credential = x.pack.credential(x.Request)
}
