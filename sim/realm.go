package sim

import (
	"cmp"
	"fmt"
	"maps"
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

// newRealm finds everything that is wrong with w at once.
func newRealm(w World) (*realm, error) {
	w = w.withDefaults()
	a := &realm{world: w, own: map[string]Steps{}, courier: w.Courier}
	if a.courier == nil {
		a.courier = courier
	}
	bad := w.check()
	limits := a.checkLimits()
	packs := a.takePacks(len(limits) == 0)
	bad = append(append(bad, limits...), packs...)
	if len(packs) == 0 {
		bad = append(bad, a.checkReach()...)
	}
	bad = append(bad, a.takeSteps()...)
	for i, h := range w.Webhooks {
		bad = append(bad, under(fmt.Sprintf("webhooks[%d]", i), h.check(a, false))...)
	}
	if len(packs) == 0 {
		bad = append(bad, a.rehearse()...)
	}
	if err := failed(bad); err != nil {
		return nil, err
	}
	return a, nil
}

// takePacks makes the packs of the world ready.
func (a *realm) takePacks(limits bool) (bad []Problem) {
	own := a.world.limits()
	if !limits {
		own = nil // what is wrong with them is told already
	}
	for i, p := range a.world.Packs {
		at := fmt.Sprintf("packs[%d]", i)
		ready, err := newPack(p, i, own)
		switch {
		case err != nil:
			bad = append(bad, Problem{Path: at, Message: err.Error(), Remedy: "mend the pack"})
			continue
		case slices.ContainsFunc(a.packs, func(o *pack) bool { return o.Name == p.Name }):
			bad = append(bad, Problem{Path: at, Message: fmt.Sprintf("pack %s is there twice", p.Name), Remedy: "name it once"})
		}
		a.packs = append(a.packs, ready)
		a.hosts = a.hosts || len(p.Hosts) > 0
	}
	return bad
}

// takeSteps reads the scripts of the world, which name what the packs have.
func (a *realm) takeSteps() (bad []Problem) {
	a.steps, bad = a.parse(a.world.Steps)
	under("steps", bad)
	for _, id := range slices.Sorted(maps.Keys(a.world.CaseSteps)) {
		steps, wrong := a.parse(a.world.CaseSteps[id])
		bad = append(bad, under("cases."+id+".steps", wrong)...)
		if a.own[id] = steps; !validCase(id) || id == "" {
			bad = append(bad, Problem{Path: "cases." + id, Message: fmt.Sprintf("%q is no id of a case", id), Remedy: caseRule})
		}
	}
	return bad
}

// parse reads a script and looks up what it names in the packs.
func (a *realm) parse(text string) (Steps, []Problem) {
	s, bad := readSteps(text)
	bad = append(bad, a.resolve(s)...)
	slices.SortStableFunc(bad, func(p, q Problem) int { return cmp.Or(p.Line-q.Line, p.Column-q.Column) })
	return s, bad
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
// or by who has such an operation; the first pack takes what is
// lost, to say so.
func (a *realm) route(r *http.Request, path string) (p *pack, within string, lost bool) {
	if a.hosts {
		host := hostOf(r)
		for _, p := range a.packs {
			for _, h := range p.Hosts {
				if host == h || strings.HasSuffix(host, "."+h) {
					return p, path, false
				}
			}
		}
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, p := range a.packs {
		if p.Name == first {
			return p, "/" + rest, false
		}
	}
	if p := a.owner(path); p != nil {
		return p, path, false
	}
	return a.packs[0], path, true
}

// owner is the first pack that has an operation with this path, nil if none
// has. Where several are served, a path that begins with a name in braces
// claims nothing without the name of its pack before it: it would swallow
// every path that nobody has.
func (a *realm) owner(path string) *pack {
	if len(a.packs) == 1 {
		return a.packs[0]
	}
	for _, p := range a.packs {
		if p.has(path) {
			return p
		}
	}
	return nil
}

// route finds the pack of x in a realm, and by it who calls.
func (x *Exchange) route(a *realm, path string) {
	x.pack, x.Path, x.lost = a.route(x.Request, path)
	x.credential = x.pack.credential(x.Request)
}
