package provider

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider/sheet"
)

//go:embed profiles/*.yaml
var files embed.FS

// names lists the built-in profiles: the files that are there.
var names = func() []string {
	entries, err := files.ReadDir("profiles")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return list
}()

// Names lists the built-in profiles, sorted.
func Names() []string { return slices.Clone(names) }

// Profile is what is known of one family of APIs.
type Profile struct {
	Name    string
	Title   string
	Extends string   // the profile behind it. "": none
	Hosts   []string // where the API is found, if that is known
	// Rules and Hints are its dialect. The hints do not hold the standard
	// ones, which stand behind them; see Terms.Dialect.
	Rules []classify.Rule
	Hints []hint.Source
	// Policy holds only what is known of the provider; all else is zero.
	Policy policy.Policy
	// Query sets request parameters.
	Query map[string]string
	// Signed tells that every attempt must be signed anew: what is kept and
	// sent later is refused.
	Signed bool
	// Facts lists what is known, and from where.
	Facts []Known
	// Exchanges are the golden exchanges in the file itself. Those of the
	// built-in profiles have files of their own; see Exchanges.
	Exchanges []Exchange

	sheets []*sheet.Node // the profile it extends first
}

// Get returns the built-in profile called name.
func Get(name string) (Profile, error) {
	load, ok := built[name]
	if !ok {
		return Profile{}, unknown(name)
	}
	p, err := load()
	p.Rules, p.Hints, p.Query = slices.Clone(p.Rules), slices.Clone(p.Hints), maps.Clone(p.Query)
	return p, err
}

func unknown(name string) error {
	return fmt.Errorf("provider: profile %q is not known, use one of %s", name, strings.Join(names, ", "))
}

// built reads each profile when it is first asked for.
var built = func() map[string]func() (Profile, error) {
	all := make(map[string]func() (Profile, error), len(names))
	for _, name := range names {
		all[name] = sync.OnceValues(func() (Profile, error) { return load(name) })
	}
	return all
}()

func load(name string) (Profile, error) {
	data, err := files.ReadFile(path.Join("profiles", name+".yaml"))
	if err != nil {
		return Profile{}, fmt.Errorf("provider: profile %s: %w", name, err)
	}
	p, problems := compile(name+".yaml", data, true)
	if len(problems) == 0 && p.Name != name {
		problems = []sheet.Problem{{File: name + ".yaml", Path: "name", Message: "the file bears another name", Remedy: "rename one of them"}}
	}
	if err := failed(problems); err != nil {
		return Profile{}, fmt.Errorf("provider: profile %s: %w", name, err)
	}
	return p, nil
}

// Overlay puts the profile's terms over t.
func (p *Profile) Overlay(t *Terms) {
	for _, n := range p.sheets {
		d := document{terms: t}
		d.table().Read(&sheet.Reader{File: p.Name}, n, "")
	}
}

// Read reads a profile of somebody's own, which problems call name. It may
// extend a built-in one.
func Read(name string, data []byte) (Profile, []sheet.Problem) {
	return compile(name, data, false)
}

var profileSort = sheet.Sort{Least: "write at least name, title and one of rules, hints and buckets", First: "begin with keys, such as name: our-ils"}

// compile reads the profile in data. A built-in one says of every fact where
// it is known from.
func compile(name string, data []byte, builtIn bool) (Profile, []sheet.Problem) {
	var p, base Profile
	node, problems := profileSort.ReadYAML(name, data)
	if len(problems) > 0 {
		return p, problems
	}
	own := document{terms: &Terms{}}
	r := sheet.Reader{File: name}
	own.table().Read(&r, node, "")
	if own.extends != "" && !(builtIn && own.extends == own.name) {
		var err error
		if base, err = load(own.extends); err != nil {
			n, _ := r.Place("extends")
			r.Problem(n, "extends", "report it", "%s", err)
			return p, r.Problems
		}
	}
	c := checker{&r, &own, &base, own.known(node)}
	c.twice()
	c.references()
	c.pace(node)
	c.rooms()
	if builtIn {
		c.sourced(node)
	}
	if len(r.Problems) > 0 {
		return p, sorted(r.Problems)
	}
	p = Profile{Name: own.name, Title: own.title, Extends: own.extends, Hosts: own.hosts, Exchanges: own.exchanges,
		sheets: append(slices.Clone(base.sheets), node)}
	p.Signed = base.Signed || slices.ContainsFunc(own.auth, func(a auth) bool { return a.Resign })
	p.Facts = slices.Concat(c.own, base.Facts)
	p.terms()
	return p, nil
}

func sorted(problems []sheet.Problem) []sheet.Problem {
	slices.SortStableFunc(problems, func(a, b sheet.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}

// terms fills in what the rooms take.
func (p *Profile) terms() {
	var t Terms
	p.Overlay(&t)
	p.Rules = t.ownRules()
	for _, o := range t.Overrides {
		p.Rules = append(p.Rules, o.Rule)
	}
	for _, h := range t.Hints {
		p.Hints = append(p.Hints, h.Source)
	}
	p.Policy, p.Query = t.Policy, t.Query
}

// failed makes one error of all problems, nil of none.
func failed[P fmt.Stringer](problems []P) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = errors.New(p.String())
	}
	return errors.Join(errs...)
}
