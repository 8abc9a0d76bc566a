// Package scenario reads the worlds of the simulator from YAML files.
//
//	packs: [stripe]
//	seed: 7
//	clock: {stepped: true}
//	steps:
//	  charges.create: 503 x2, commit-then-504, ok      # the short form
//	  GET /v1/charges/{id}:                            # the long form
//	    - {step: 429, after: 2s, times: 3}
//	    - {step: golden, text: an expired token}
//	limits:
//	  - {name: requests, kind: fixed_window, capacity: 100, window: 1m}
//	webhooks:
//	  - http://127.0.0.1:9000/hook                     # the short form
//	  - {url: "http://127.0.0.1:9001/", events: [charge.*], delay: 5s}
//	begin:                                             # what is there at first
//	  - {do: POST /v1/customers, form: {email: a@example.com}}
//	cases:
//	  alpha: {steps: {charges.create: reset}}
//
// A key that is not there keeps its default. Every problem is told with line
// and column, all at once; a file with a problem yields no world. Schema is
// the JSON Schema of the files, for editors. Reader makes POST /_sim/scenario
// understand them.
//
// Limits: the place of a problem inside a step is exact where the step is
// written without quotes; else it is that of the step.
package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/provider/sheet"
	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Packs finds packs by their names; pack.Named is one.
type Packs func(names ...string) ([]sim.Pack, error)

// Error is all that is wrong with a scenario.
type Error struct{ Problems []sheet.Problem }

// Error implements error: one problem per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// All returns the problems; the simulator tells them by it.
func (e *Error) All() []sheet.Problem { return e.Problems }

// Reader is a sim.World.Scenario that finds its packs by packs.
func Reader(packs Packs) func(text []byte) (sim.World, error) {
	return func(text []byte) (sim.World, error) { return Read("scenario", text, packs) }
}

// Read reads the scenario in data, which came from the file called name.
func Read(name string, data []byte, packs Packs) (sim.World, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return sim.World{}, &Error{[]sheet.Problem{{File: name, Line: 1, Column: 1,
			Message: "the scenario is empty", Remedy: "write at least packs: [generic]"}}}
	}
	node, problems := sheet.ReadYAML(name, data)
	if node == nil {
		return sim.World{}, &Error{problems}
	}
	f := file{packs: packs}
	r := &sheet.Reader{File: name, Problems: problems}
	f.block().Read(r, node, "")
	if len(r.Problems) > 0 {
		return sim.World{}, &Error{r.Problems}
	}
	w := f.world
	if _, err := sim.New(w); err != nil { // what no single key shows
		f.place(r, node, err)
		return sim.World{}, &Error{r.Problems}
	}
	return w, nil
}

// Schema returns the JSON Schema (2020-12) of scenario files, for editors.
func Schema() []byte { return sheet.JSONSchema((&file{}).block(), "heed sim scenario") }

// file is a scenario while it is read.
type file struct {
	packs  Packs
	world  sim.World
	names  []string
	script script
	cases  map[string]script
}

func (f *file) block() sheet.Block {
	w := &f.world
	f.script.steps = &w.Steps
	return sheet.Block{
		Fields: []sheet.Field{
			{Name: "packs", Doc: "The providers that are served, by name.", Value: sheet.Texts(&f.names)},
			{Name: "seed", Doc: "Another number makes another world.", Value: seed(&w.Seed)},
			{Name: "clock", Doc: "How the time of each case passes.", Value: f.clock()},
			{Name: "rate", Doc: "The short form of a limit: requests per time of each credential.", Value: sheet.Rate(&w.Rate)},
			{Name: "burst", Doc: "How many requests fit at once, with rate.", Value: sheet.Int(&w.Burst, 1)},
			{Name: "penalty", Doc: "How long the first refusal closes a credential, with rate.", Value: sheet.Duration(&w.Penalty)},
			{Name: "penalty_max", Doc: "The longest penalty.", Value: sheet.Duration(&w.PenaltyMax)},
			{Name: "grace", Doc: "How soon after a refusal a request is forgiven.", Value: sheet.DurationZero(&w.Grace, -1)},
			{Name: "limits", Doc: "Limits in place of those of the packs.", Value: sheet.List(&w.Limits, limit)},
			{Name: "failure_rate", Doc: "The part of requests that fails by chance.", Value: sheet.Float(&w.FailureRate, 0, 1)},
			{Name: "records", Doc: "How many records a pack has at first.", Value: sheet.Int(&w.Records, 1)},
			{Name: "journal_size", Doc: "How many requests the journal of a case keeps.", Value: sheet.Int(&w.JournalSize, 1)},
			{Name: "max_cases", Doc: "How many cases with a name are kept.", Value: sheet.Int(&w.Cases, 1)},
			{Name: "steps", Doc: "By operation, what it answers at first.", Value: &f.script},
			{Name: "webhooks", Doc: "Where messages are sent that tell of events.", Value: sheet.List(&w.Webhooks, webhook)},
			{Name: "begin", Doc: "Requests that every case has behind it when it begins.", Value: sheet.List(&w.Begin, request)},
			{Name: "cases", Doc: "Cases with steps of their own, by id.", Value: sheet.Map[script]{P: &f.cases, One: caseBlock}},
		},
		Check: f.check,
	}
}

func (f *file) clock() sheet.Block {
	c := &f.world.Clock
	return sheet.Block{Fields: []sheet.Field{
		{Name: "scale", Doc: "Time passes so many times as fast.", Value: sheet.Float(&c.Scale, 0.001, 1e6)},
		{Name: "stepped", Doc: "Time stands still until it is moved.", Value: sheet.Bool(&c.Stepped)},
		{Name: "start", Doc: "What the clock shows when a case begins.", Value: sheet.Parsed{
			Parse: func(text string) (err error) {
				if c.Start, err = time.Parse(time.RFC3339, text); err != nil {
					return errors.New("this is no instant")
				}
				return nil
			},
			Show:    func() (string, bool) { return c.Start.Format(time.RFC3339), !c.Start.IsZero() },
			Remedy:  "write an instant such as 2026-03-01T12:00:00Z",
			Example: "2026-03-01T12:00:00Z",
		}},
	}}
}

func seed(p *uint64) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) (err error) {
			if *p, err = strconv.ParseUint(text, 10, 64); err != nil {
				return errors.New("this is no seed")
			}
			return nil
		},
		Show:    func() (string, bool) { return fmt.Sprint(*p), *p != 0 },
		Remedy:  "write a whole number of 0 or more",
		Numeric: true,
	}
}

func caseBlock(s *script) sheet.Value {
	s.steps = new(string)
	return sheet.Block{Fields: []sheet.Field{{Name: "steps", Doc: "By operation, what it answers at first.", Value: s}}}
}

var (
	scopes = []string{"credential", "everyone", "path_value", "custom"}
	tells  = []string{"honest", "missing", "late", "lying"}
	hints  = []string{"true", "missing", "short", "long"}
)

func limit(l *rate.Limit) sheet.Value {
	return sheet.Block{
		Fields: []sheet.Field{
			{Name: "name", Doc: "How headers and the journal tell it.", Value: sheet.Text(&l.Name), Required: true},
			{Name: "kind", Doc: "The way of counting.", Value: sheet.OneOf(&l.Kind, rate.Kinds()...)},
			{Name: "capacity", Doc: "How much fits.", Value: sheet.Float(&l.Capacity, 1, 1e12), Required: true},
			{Name: "refill", Doc: "Of the buckets: how much comes back.", Value: sheet.Rate(&l.Refill)},
			{Name: "window", Doc: "Of the windows: how long one is.", Value: sheet.Duration(&l.Window)},
			{Name: "midnight", Doc: "Of daily: when the day begins, after 00:00 UTC.", Value: sheet.Duration(&l.Midnight)},
			{Name: "weighted", Doc: "Whether it counts costs, not requests.", Value: sheet.Bool(&l.Weighted)},
			{Name: "scope", Doc: "Who shares it.", Value: word(&l.Scope, scopes)},
			{Name: "value", Doc: "Of the scope path_value: the name in the path.", Value: sheet.Text(&l.Value)},
			{Name: "routes", Doc: "The path group, such as GET /v1/search/**.", Value: sheet.Texts(&l.Routes)},
			{Name: "tell", Doc: "What headers tell of it.", Value: word(&l.Tell, tells)},
			{Name: "hint", Doc: "How long refusals tell callers to stay away.", Value: word(&l.Hint, hints)},
			{Name: "penalty", Doc: "What early requests cost.", Value: penalty(&l.Penalty)},
		},
		Check: func(m sheet.Read) {
			if told(m) {
				return // what a field that could not be read lacks follows from that
			}
			if err := l.Check(); err != nil {
				m.Problem(m.Node, m.Path, "see what its kind needs", "%s", err)
			}
		},
	}
}

// told tells whether something is wrong with what stands in the block.
func told(m sheet.Read) bool {
	return slices.ContainsFunc(m.Problems, func(p sheet.Problem) bool { return strings.HasPrefix(p.Path, m.Path+".") })
}

func webhook(h *sim.Webhook) sheet.Value {
	return sheet.Short{Value: sheet.Text(&h.URL), Long: sheet.Block{Fields: []sheet.Field{
		{Name: "url", Doc: "Where they are sent, really and by POST.", Value: sheet.Text(&h.URL), Required: true},
		{Name: "secret", Doc: "What signs them; the default is made from the seed.", Value: sheet.Text(&h.Secret)},
		{Name: "pack", Doc: "Whose events are sent.", Value: sheet.Text(&h.Pack)},
		{Name: "events", Doc: "Which are, such as charge.succeeded or charge.*.", Value: sheet.Texts(&h.Events)},
		{Name: "delay", Doc: "How long after the event.", Value: sheet.Duration(&h.Delay)},
	}}}
}

func penalty(p *rate.Penalty) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "first", Doc: "How long the first refusal closes it.", Value: sheet.Duration(&p.First), Required: true},
		{Name: "max", Doc: "The longest block.", Value: sheet.Duration(&p.Max)},
		{Name: "grace", Doc: "How soon after a refusal a request is forgiven.", Value: sheet.Duration(&p.Grace)},
		{Name: "ban_after", Doc: "How many early requests are a ban.", Value: sheet.Int(&p.BanAfter, 1)},
		{Name: "ban_for", Doc: "How long a ban lasts.", Value: sheet.Duration(&p.BanFor)},
	}}
}

// word binds a small number to one of the words.
func word[T ~uint8](p *T, words []string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			i := slices.Index(words, text)
			if i < 0 {
				return fmt.Errorf("%q is not known", text)
			}
			*p = T(i)
			return nil
		},
		Show:    func() (string, bool) { return words[*p], *p != 0 },
		Remedy:  "use one of " + strings.Join(words, ", "),
		Pattern: "^(" + strings.Join(words, "|") + ")$",
	}
}

// check finds the packs and gathers the scripts of the cases.
func (f *file) check(m sheet.Read) {
	if f.names != nil {
		packs, err := f.packs(f.names...)
		if err != nil {
			m.Bad("packs", "name packs that are there, each once", "%s", err)
		}
		f.world.Packs = packs
	}
	for id, s := range f.cases {
		if f.world.CaseSteps == nil {
			f.world.CaseSteps = map[string]string{}
		}
		f.world.CaseSteps[id] = *s.steps
	}
}

// place tells err at the step that it is about, or else of the whole file.
func (f *file) place(r *sheet.Reader, top *sheet.Node, err error) {
	bad, ok := errors.AsType[*sim.StepsError](err)
	if !ok {
		at, path := about(top, err)
		message, remedy, _ := strings.Cut(strings.TrimPrefix(err.Error(), "sim: "), "; ")
		r.Problem(at, path, remedy, "%s", strings.TrimPrefix(message, path+": "))
		return
	}
	for _, s := range append(valuesOf(f.cases), f.script) { // the marks of cases first: that of the world is empty
		if i := bad.Line - 1; i < len(s.lines) && strings.Contains(err.Error(), s.mark) {
			r.Problem(s.lines[i], "steps", bad.Remedy, "%s", bad.Message)
			return
		}
	}
	r.Problem(top, "steps", bad.Remedy, "%s", bad.Message)
}

// about finds what the error of a world is about.
func about(top *sheet.Node, err error) (*sheet.Node, string) {
	if bad, ok := errors.AsType[*sim.ItemError](err); ok {
		if list := top.Get(bad.List); list != nil && bad.Index < len(list.Items) {
			return list.Items[bad.Index], bad.List + "[" + strconv.Itoa(bad.Index) + "]"
		}
	}
	for _, m := range top.Members { // such as penalty_max, which the sentence may call maximum penalty
		if word, _, _ := strings.Cut(m.Key.Text, "_"); strings.Contains(err.Error(), word) {
			return m.Value, m.Key.Text
		}
	}
	return top, ""
}

func valuesOf(m map[string]script) (all []script) {
	for id, s := range m {
		s.mark = "case " + id + ":"
		all = append(all, s)
	}
	return all
}
