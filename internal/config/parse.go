package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// Problem is one thing that is wrong with a heed.yaml, with its place and what
// to write instead.
type Problem = sheet.Problem

// Problems is everything that is wrong, in the order of the file. It is the
// error of Load and Parse.
type Problems []Problem

// Error lists the problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Warning is something that is valid and will not do what was meant.
type Warning Problem

// String tells it in one line.
func (w Warning) String() string { return Problem(w).String() }

// Load reads the file at path.
func Load(path string) (*Config, []Warning, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w; heed init writes a first one", err)
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, sheet.MaxBytes+1))
	if err != nil {
		return nil, nil, err
	}
	return Parse(path, data)
}

// Parse reads data, which problems call name. An error is Problems.
func Parse(name string, data []byte) (*Config, []Warning, error) {
	root, problems := sheet.ReadYAML(name, data)
	if root == nil {
		return nil, nil, Problems(problems)
	}
	c := defaults()
	c.File = name
	p := parser{Reader: sheet.Reader{File: name, Problems: problems}, root: root, config: c}
	f := file{Config: c, defaults: newEntry()}
	f.endpoints = &p
	f.table().Read(&p.Reader, root, "")
	p.derive("defaults", f.defaults, root.Get("defaults"))
	for i := range p.entries {
		p.finish(&p.entries[i])
	}
	p.checkWhole()
	if len(p.Problems) > 0 {
		slices.SortStableFunc(p.Problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, nil, Problems(append(p.Problems, p.foreign...))
	}
	c.read = &p.Reader
	return c, p.locate(Lint(c)), nil
}

// defaults is a Config in which nothing was set.
func defaults() *Config {
	return &Config{
		Listen: Listen{Data: "127.0.0.1:8642", Admin: "127.0.0.1:8643"},
		Log:    Log{Level: "info", Format: "json", Attempts: "all", Calls: "all"},
		Trace:  Trace{Sample: 1},
		Bounds: Bounds{HeaderBytes: 64 << 10, BodyBytes: 1 << 30, Calls: 4096},
	}
}

// parser reads the endpoints, each over its defaults and profile.
type parser struct {
	sheet.Reader
	root    *sheet.Node
	config  *Config
	entries []written
	foreign []Problem // of the profiles that the file names
}

// written is an endpoint and where it was written.
type written struct {
	entry
	node *sheet.Node
	path string
}

func newEntry() entry {
	return entry{&Endpoint{}, &provider.Terms{}}
}

// Read implements sheet.Value.
func (p *parser) Read(r *sheet.Reader, n *sheet.Node, path string) {
	if n.Kind == sheet.Mapping && len(n.Members) == 0 || n.IsNull() {
		r.Problem(n, path, "name one, such as sierra, with its url", "there is no endpoint")
		return
	}
	p.byName(r).Read(r, n, path)
}

// byName is the table of the endpoints. A Map would forget their order, so
// each is put down as it is read.
func (p *parser) byName(r *sheet.Reader) sheet.Value {
	var m map[string]written
	return sheet.Map[written]{P: &m, Name: checkName, Pattern: namePattern.String(), One: func(w *written) sheet.Value {
		w.entry = newEntry()
		return reading{p, w}
	}}
}

// unknownAPI is the profile of an endpoint that names none.
const unknownAPI = "generic"

// reading is one endpoint that is about to be read.
type reading struct {
	p *parser
	w *written
}

// Read implements sheet.Value.
func (g reading) Read(r *sheet.Reader, n *sheet.Node, path string) {
	x := g.w.entry
	x.e.Profile = unknownAPI
	named := n.Get("profile")
	if named == nil || named.Kind != sheet.Scalar {
		named = &sheet.Node{Text: unknownAPI}
	}
	profile, ok := g.p.profile(named.Text, named, sheet.Join(path, "profile"))
	g.inherit(x, profile, ok)
	sheet.Block{Fields: x.fields()}.Read(r, n, path)
	x.e.Name = strings.TrimPrefix(path, "endpoints.")
	g.p.entries = append(g.p.entries, written{x, n, path})
}

// inherit fills in what holds before the endpoint says anything. The numbers of
// a profile go before those of defaults, because they are about this very
// provider; rules and hints that somebody wrote stand before the built-in ones.
func (g reading) inherit(x entry, known provider.Profile, is bool) {
	if is {
		known.Overlay(x.t)
	}
	if d := g.p.root.Get("defaults"); d != nil {
		// What is wrong there is reported once, where it stands.
		sheet.Block{Fields: x.shared()}.Read(&sheet.Reader{}, d, "")
	}
	if is {
		rules, hints, overrides := x.t.Rules, x.t.Hints, x.t.Overrides
		known.Overlay(x.t)
		x.t.Rules, x.t.Hints, x.t.Overrides = rules, hints, overrides
	}
}

// Write implements sheet.Value.
func (g reading) Write() *sheet.Node { return sheet.Block{Fields: g.w.fields()}.Write() }

// Schema implements sheet.Value.
func (g reading) Schema() map[string]any { return sheet.Block{Fields: g.w.fields()}.Schema() }

// Write implements sheet.Value; Show writes endpoints by itself.
func (p *parser) Write() *sheet.Node { return nil }

// Schema implements sheet.Value.
func (p *parser) Schema() map[string]any { return p.byName(&p.Reader).Schema() }

// finish checks an endpoint and puts it into the Config.
func (p *parser) finish(w *written) {
	p.derive(w.path, w.entry, w.node)
	e, t := w.e, w.t
	e.Policy = t.Policy.WithDefaults()
	e.Policy.Endpoint = e.Name
	e.Auth.Kind = cmp.Or(e.Auth.Kind, AuthNone)
	e.Rules, e.Hints = t.Dialect()
	e.Doubtful = doubtful(t)
	e.ForceQuery, e.HealthyP99 = t.Query, t.HealthyP99
	p.config.Endpoints = append(p.config.Endpoints, *e)
}

// doubtful finds what nobody has looked up.
func doubtful(t *provider.Terms) map[string]provider.Grade {
	grades := map[string]provider.Grade{}
	note := func(name string, g provider.Grade) {
		if g.Doubtful() {
			grades[name] = g
		}
	}
	for _, r := range t.Rules {
		note(r.ID, r.Grade)
	}
	for _, o := range t.Overrides { // as the classifier tells them
		note(o.ID+": true", o.Grade)
		note(o.ID+": false", o.Grade)
	}
	for _, h := range t.Hints {
		note(http.CanonicalHeaderKey(h.Header), h.Grade)
	}
	note("limits", t.LimitGrade)
	return grades
}

// derive reports what the rooms say about terms that were read at path.
func (p *parser) derive(path string, x entry, n *sheet.Node) {
	if n == nil {
		return
	}
	for _, problem := range x.t.Policy.WithDefaults().Validate() {
		p.told(path, problem)
	}
	own := provider.Terms{}
	if rules := n.Get("rules"); rules != nil {
		own.Rules = x.t.Rules[:min(len(rules.Items), len(x.t.Rules))]
	}
	if hints := n.Get("hints"); hints != nil && hints.Get("sources") != nil {
		own.Hints = x.t.Hints[:min(len(hints.Get("sources").Items), len(x.t.Hints))]
	}
	rules, sources := own.Dialect()
	_, problems := classify.New(rules)
	for _, problem := range problems {
		problem.Path = strings.Replace(problem.Path, ".when.statuses[", ".when.status[", 1)
		p.told(path, problem)
	}
	if sources != nil {
		_, problems = hint.NewReader(sources)
	}
	for _, problem := range problems {
		problem.Path = strings.Replace(problem.Path, "hints[", "hints.sources[", 1)
		p.told(path, problem)
	}
}

// told reports a problem of a room, unless reading has said so already.
func (p *parser) told(path string, problem policy.Problem) {
	at := p.Listed(sheet.Join(path, problem.Path))
	common := sheet.Join("defaults", problem.Path)
	for _, known := range p.Problems {
		if strings.HasPrefix(known.Path, at) || strings.HasPrefix(at, known.Path+".") ||
			known.Path == common && known.Message == problem.Message {
			return
		}
	}
	n, exact := p.Place(at)
	if d, there := p.Place(common); !exact && there {
		n = d
	}
	p.Problem(n, at, problem.Remedy, "%s", problem.Message)
}

// locate says where the settings stand that warnings are about. What several
// endpoints have from one place in defaults is told once.
func (p *parser) locate(warnings []Warning) []Warning {
	var all []Warning
	shared := map[Warning]*common{}
	for _, w := range warnings {
		n, exact := p.Place(w.Path)
		name, field, _ := strings.Cut(strings.TrimPrefix(w.Path, "endpoints."), ".")
		d, there := p.Place(sheet.Join("defaults", field))
		inherited := !exact && there && strings.HasPrefix(w.Path, "endpoints.")
		if inherited {
			n = d
		}
		w.File, w.Line, w.Column = p.File, n.Line, n.Column
		if inherited {
			same := w
			same.Path = sheet.Join("defaults", field)
			if c, told := shared[same]; told {
				c.names = append(c.names, name)
				continue
			}
			shared[same] = &common{at: len(all), names: []string{name}}
		}
		all = append(all, w)
	}
	for same, c := range shared {
		if len(c.names) > 1 {
			all[c.at] = same
			all[c.at].Message += " (endpoints " + strings.Join(c.names, ", ") + ")"
		}
	}
	return all
}

// common is a warning about defaults, and the endpoints that it concerns.
type common struct {
	at    int // in the list
	names []string
}
