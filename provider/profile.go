// Package provider holds what is known of a provider's API as data: what its
// error answers mean, which headers tell of quota, what it bears. A profile is
// a YAML file in profiles/, in the words of heed.yaml, and every fact in it
// says where it is known from and how well.
//
// Get compiles a profile into the values that classify, hint and policy take.
// The tables in this package are the grammar of those words for heed.yaml too,
// so that a rule can be moved from one to the other.
//
// A profile is no promise of the provider: facts of the grade unverified are
// guesses that have not done harm yet. Facts lists them.
package provider

import (
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
	Name  string
	Title string
	// Rules and Hints are its dialect. The hints do not hold the standard
	// ones, which stand behind them; see Terms.Dialect.
	Rules []classify.Rule
	Hints []hint.Source
	// Policy holds only what is known of the provider; all else is zero.
	Policy policy.Policy
	// Query sets request parameters.
	Query map[string]string
	// Facts lists where each part is known from.
	Facts []Known

	sheets []*sheet.Node // the profile it extends first
}

// Known is one fact of a profile.
type Known struct {
	// About is the id of a rule, the name of a header, limits, or a sentence.
	About string
	Fact
}

// Get returns the built-in profile called name.
func Get(name string) (Profile, error) {
	all, err := compiled()
	if err != nil {
		return Profile{}, err
	}
	p, ok := all[name]
	if !ok {
		return p, unknown(name)
	}
	p.Rules, p.Hints, p.Query = slices.Clone(p.Rules), slices.Clone(p.Hints), maps.Clone(p.Query)
	return p, nil
}

func unknown(name string) error {
	return fmt.Errorf("provider: profile %q is not known, use one of %s", name, strings.Join(names, ", "))
}

// compiled holds all profiles, which are read when the first is asked for.
var compiled = sync.OnceValues(func() (map[string]Profile, error) {
	all := make(map[string]Profile, len(names))
	for _, name := range names {
		p, err := load(name)
		if err != nil {
			return nil, err
		}
		all[name] = p
	}
	return all, nil
})

func load(name string) (Profile, error) {
	data, err := files.ReadFile(path.Join("profiles", name+".yaml"))
	if err != nil {
		return Profile{}, fmt.Errorf("provider: profile %s: %w", name, err)
	}
	p, err := compile(name, data)
	if err != nil {
		return Profile{}, fmt.Errorf("provider: profile %s: %w", name, err)
	}
	return p, nil
}

// Overlay puts the profile's terms over t.
func (p *Profile) Overlay(t *Terms) {
	for _, n := range p.sheets {
		p.head(t, new(string), new([]note)).Read(&sheet.Reader{File: p.Name}, n, "")
	}
}

// note is a fact that no rule holds: how the API authenticates, pages, or lies
// in a way that no answer shows.
type note struct {
	Text string
	Fact
}

// head is the table of a whole profile.
func (p *Profile) head(t *Terms, extends *string, notes *[]note) sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "name", Doc: "The name of the profile.", Required: true, Value: sheet.Text(&p.Name)},
		{Name: "title", Doc: "What it is about.", Required: true, Value: sheet.Text(&p.Title)},
		{Name: "extends", Doc: "The profile whose rules and hints stand behind its own.", Value: sheet.OneOf(extends, names...)},
		{Name: "notes", Doc: "Facts that no rule holds.", Value: sheet.List(notes, func(n *note) sheet.Value {
			return sheet.Block{Fields: append([]sheet.Field{
				{Name: "fact", Doc: "What is so.", Required: true, Value: sheet.Text(&n.Text)},
			}, n.Fact.fields()...)}
		})},
	}, t.Fields()...)}
}

func compile(name string, data []byte) (Profile, error) {
	var p Profile
	node, problems := sheet.ReadYAML(name, data)
	if len(problems) > 0 {
		return p, failed(problems)
	}
	extends := ""
	if n := node.Get("extends"); n != nil {
		extends = n.Text
	}
	if extends != "" && extends != name {
		base, err := load(extends)
		if err != nil {
			return p, err
		}
		p.sheets, p.Facts = base.sheets, base.Facts
	}
	var terms Terms
	p.Overlay(&terms)
	p.sheets = append(slices.Clone(p.sheets), node)

	own, notes, r := Terms{}, []note(nil), sheet.Reader{File: name}
	p.head(&own, &extends, &notes).Read(&r, node, "")
	if len(r.Problems) > 0 {
		return p, failed(r.Problems)
	}
	p.Facts = append(facts(&own, notes), p.Facts...)
	p.head(&terms, &extends, &notes).Read(&r, node, "")
	p.Policy, p.Query = terms.Policy, terms.Query
	return p, p.dialect(&terms)
}

// dialect takes the rules and hints of t and checks them.
func (p *Profile) dialect(t *Terms) error {
	for _, rule := range t.Rules {
		p.Rules = append(p.Rules, rule.Rule)
	}
	for _, h := range t.Hints {
		p.Hints = append(p.Hints, h.Source)
	}
	_, problems := classify.New(p.Rules)
	_, more := hint.NewReader(append([]hint.Source{}, p.Hints...))
	problems = append(problems, more...)
	problems = append(problems, p.Policy.Validate()...)
	return troubles(problems)
}

// troubles makes one error of all problems.
func troubles(problems []policy.Problem) error {
	errs := make([]error, len(problems))
	for i, problem := range problems {
		errs[i] = errors.New(problem.String())
	}
	return errors.Join(errs...)
}

func facts(t *Terms, notes []note) []Known {
	var all []Known
	for _, r := range t.Rules {
		all = append(all, Known{r.ID, r.Fact})
	}
	for _, h := range t.Hints {
		all = append(all, Known{h.Header, h.Fact})
	}
	if t.LimitGrade != "" {
		all = append(all, Known{"limits", Fact{t.Policy.Limits.Source, t.LimitGrade}})
	}
	for _, n := range notes {
		all = append(all, Known{n.Text, n.Fact})
	}
	return all
}

func failed(problems []sheet.Problem) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = errors.New(p.String())
	}
	return errors.Join(errs...)
}
