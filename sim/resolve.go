package sim

import (
	"fmt"
	"slices"

	"github.com/heedproject/heed/sim/rate"
)

// What a script or a limit names and no pack that is served has would never
// come to pass: it is refused, with what there is.

// resolve looks up what the lines of a script name.
func (a *realm) resolve(s Steps) (bad []Problem) {
	seen := map[string]int{}
	for i := range s.rules {
		r := &s.rules[i]
		wrong := func(column int, remedy, format string, args ...any) {
			bad = append(bad, Problem{Line: r.line, Column: column, Message: fmt.Sprintf(format, args...), Remedy: remedy, Served: true})
		}
		if line, twice := seen[r.name()]; twice {
			bad = append(bad, Problem{Line: r.line, Column: r.column, Message: fmt.Sprintf("%q is there already, in line %d, which counts alone", r.name(), line), Remedy: "put all steps into one line"})
		} else {
			seen[r.name()] = r.line
		}
		switch {
		case r.named != "":
			if !a.names(r.named) {
				wrong(r.column, suggest(r.named, a.operationNames(), "heed sim packs NAME lists what a pack has"), "no pack has an operation %q", r.named)
			}
		case r.event != "":
			if known, all := a.events(""); all && !matchesAny(r.event, known) {
				wrong(r.column, eventRemedy(r.event, known), "no pack that is served tells of an event %q", r.event)
			}
		case !a.everything() && !a.reaches(route{r.method, r.pattern}):
			wrong(r.column, suggest(r.name(), a.routes(), "heed sim packs NAME lists what a pack has"), "no pack has an operation at %q", r.name())
		}
		for j := range r.steps {
			one := &r.steps[j]
			if one.fault == nil || one.fault.name != "golden" || one.said == "" {
				continue
			}
			if message, remedy := a.lacksGolden(one.said); message != "" {
				wrong(one.column, remedy, "%s", message)
			}
		}
	}
	return bad
}

// everything tells whether some pack has all paths: a step makes any path of
// the generic pack answer.
func (a *realm) everything() bool {
	return len(a.packs) == 0 || slices.ContainsFunc(a.packs, func(p *pack) bool { return p.Name == genericName })
}

// reaches tells whether r can match what some operation does.
func (a *realm) reaches(r route) bool {
	return a.some(func(o *operation) bool {
		method := r.method == "*" || o.method == "*" || r.method == o.method || r.method == "HEAD" && o.method == "GET"
		return method && r.pattern.meets(&o.pattern)
	})
}

func (a *realm) names(name string) bool {
	return a.some(func(o *operation) bool { return o.Name == name })
}

func (a *realm) some(is func(*operation) bool) bool {
	return slices.ContainsFunc(a.packs, func(p *pack) bool {
		for i := range p.operations {
			if is(&p.operations[i]) {
				return true
			}
		}
		return false
	})
}

func (a *realm) operationNames() (all []string) {
	a.some(func(o *operation) bool { all = append(all, o.Name); return false })
	return all
}

func (a *realm) routes() (all []string) {
	a.some(func(o *operation) bool { all = append(all, o.Route); return false })
	return all
}

// events are those of which the packs tell, or the one that is named; all is
// false where one of them does not say.
func (a *realm) events(pack string) (known []string, all bool) {
	all = true
	for _, p := range a.packs {
		if pack == "" || p.Name == pack {
			known = append(known, p.hooks.Events...)
			all = all && p.hooks.Events != nil
		}
	}
	return known, all
}

func matchesAny(pattern string, events []string) bool {
	return slices.ContainsFunc(events, func(e string) bool { return eventMatches(pattern, e) })
}

func eventRemedy(event string, known []string) string {
	if len(known) == 0 {
		return "leave it out, or serve a pack that tells of events"
	}
	return suggest(event, known, "heed sim packs NAME lists the events of a pack")
}

// checkLimits says what is wrong with the limits of the world by themselves.
func (a *realm) checkLimits() (bad []Problem) {
	shift := len(a.world.limits()) - len(a.world.Limits) // of Rate and Burst, which come first
	seen := map[string]bool{}
	if shift > 0 {
		seen[a.world.limits()[0].Name] = true
	}
	for i, l := range a.world.Limits {
		at := fmt.Sprintf("limits[%d]", i)
		for _, p := range l.Check() {
			bad = append(bad, Problem{Path: at + "." + p.Field, Message: p.Message, Remedy: p.Remedy})
		}
		if seen[l.Name] {
			bad = append(bad, Problem{Path: at + ".name", Message: fmt.Sprintf("there is a limit %q already", l.Name),
				Remedy: "give each a name of its own; rate and burst make one that is called requests"})
		}
		seen[l.Name] = true
		for j, text := range l.Routes {
			if _, err := newRoute(text); err != nil {
				bad = append(bad, Problem{Path: fmt.Sprintf("%s.routes[%d]", at, j), Message: err.Error(), Remedy: routeRule})
			}
		}
	}
	return bad
}

// checkReach says which limits of the world count nothing that is served.
func (a *realm) checkReach() (bad []Problem) {
	for i, l := range a.world.Limits {
		at := fmt.Sprintf("limits[%d]", i)
		wrong := func(path, remedy, format string, args ...any) {
			bad = append(bad, Problem{Path: at + path, Message: fmt.Sprintf("limit %q: ", l.Name) + fmt.Sprintf(format, args...), Remedy: remedy, Served: true})
		}
		for j, text := range l.Routes {
			if r, err := newRoute(text); err == nil && !a.reaches(r) {
				wrong(fmt.Sprintf(".routes[%d]", j), suggest(text, a.routes(), "heed sim packs NAME lists what a pack has"), "no operation is at %q", text)
			}
		}
		switch {
		case l.Scope == rate.PathValue && l.Value != "" && !a.some(func(o *operation) bool { return o.pattern.names(l.Value) }):
			wrong(".value", "take a name in braces from the paths that heed sim packs NAME lists", "no path has a value called %q", l.Value)
		case l.Scope == rate.Custom && !slices.ContainsFunc(a.packs, func(p *pack) bool { return p.LimitBy != nil }):
			wrong(".scope", "use credential, everyone or path_value", "no pack that is served counts apart in a way of its own")
		}
	}
	return bad
}
