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
	"cmp"
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
func Reader(packs Packs) func(text []byte, ofCase bool) (sim.World, error) {
	return func(text []byte, ofCase bool) (sim.World, error) {
		return read("scenario", text, file{packs: packs, ofCase: ofCase})
	}
}

// Read reads the scenario in data, which came from the file called name.
func Read(name string, data []byte, packs Packs) (sim.World, error) {
	return read(name, data, file{packs: packs})
}

func read(name string, data []byte, f file) (sim.World, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return sim.World{}, &Error{[]sheet.Problem{{File: name, Line: 1, Column: 1,
			Message: "the scenario is empty", Remedy: "write at least packs: [generic]"}}}
	}
	node, problems := sheet.ReadYAML(name, data)
	if node == nil {
		return sim.World{}, &Error{problems}
	}
	r := &sheet.Reader{File: name, Problems: problems}
	f.block().Read(r, node, "")
	f.weigh(r, node)
	if len(r.Problems) > 0 {
		slices.SortStableFunc(r.Problems, func(p, q sheet.Problem) int { return cmp.Or(p.Line-q.Line, p.Column-q.Column) })
		return sim.World{}, &Error{r.Problems}
	}
	return f.world, nil
}

// Schema returns the JSON Schema (2020-12) of scenario files, for editors.
func Schema() []byte { return sheet.JSONSchema((&file{}).block(), "heed sim scenario") }

// file is a scenario while it is read.
type file struct {
	packs  Packs
	ofCase bool // of one case alone
	world  sim.World
	names  []string
	script script
	cases  map[string]script
	astray bool // a pack that is named is not there
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
	}
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
		f.world.Packs = []sim.Pack{}
	}
	list := m.Node.Get("packs")
	for i, name := range f.names {
		packs, err := f.packs(append(namesOf(f.world.Packs), name)...)
		if err == nil {
			f.world.Packs = packs
			continue
		}
		message, remedy, _ := strings.Cut(err.Error(), "; ")
		m.Problem(list.Items[i], "packs["+strconv.Itoa(i)+"]", remedy, "%s", message)
		f.astray = true
	}
	if f.astray && len(f.world.Packs) == 0 {
		f.world.Packs = nil // one is to be served
	}
	for id, s := range f.cases {
		if f.world.CaseSteps == nil {
			f.world.CaseSteps = map[string]string{}
		}
		f.world.CaseSteps[id] = *s.steps
	}
	if !f.ofCase {
		return
	}
	for _, key := range []string{"cases", "max_cases"} {
		if m.Has(key) {
			m.Bad(key, "leave it out, or send the scenario without a case", "the world of one case has no other cases")
		}
	}
}

func namesOf(packs []sim.Pack) []string {
	names := make([]string, len(packs))
	for i, p := range packs {
		names[i] = p.Name
	}
	return names
}

// weigh adds what no single key shows: the problems of the world that was read.
// What follows from a problem of a key, or of a pack that is not there, is not
// told.
func (f *file) weigh(r *sheet.Reader, top *sheet.Node) {
	_, err := sim.New(f.world)
	bad, ok := errors.AsType[*sim.Error](err)
	if !ok {
		return
	}
	read := slices.Clone(r.Problems)
	for _, p := range bad.Problems {
		if s := f.scriptAt(p.Path); s != nil && p.Line > 0 {
			if !p.Served || !f.astray {
				s.tell(r, p)
			}
			continue
		}
		if p.Served && f.astray || slices.ContainsFunc(read, func(t sheet.Problem) bool { return follows(p.Path, t.Path) }) {
			continue
		}
		at := sim.NodeAt(top, p.Path)
		r.Problems = append(r.Problems, sheet.Problem{File: r.File, Line: at.Line, Column: at.Column, Path: p.Path, Message: p.Message, Remedy: p.Remedy})
	}
}

// scriptAt is the script at a path of the world.
func (f *file) scriptAt(path string) *script {
	if path == "steps" {
		return &f.script
	}
	id, isCase := strings.CutPrefix(strings.TrimSuffix(path, ".steps"), "cases.")
	if s, ok := f.cases[id]; ok && isCase {
		return &s
	}
	return nil
}

// kin are keys of one place that are judged together.
var kin = []string{" rate burst penalty penalty_max grace ", " kind capacity refill window midnight ", " scope value "}

// follows tells whether a problem at path may follow from one that was told of
// a key.
func follows(path, told string) bool {
	inside := func(a, b string) bool {
		rest, ok := strings.CutPrefix(a, b)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	if told == "" {
		return false
	}
	if inside(path, told) {
		return true
	}
	at, key := path[:strings.LastIndexByte(path, '.')+1], path[strings.LastIndexByte(path, '.')+1:]
	other, ok := strings.CutPrefix(told, at)
	return ok && slices.ContainsFunc(kin, func(k string) bool {
		return strings.Contains(k, " "+key+" ") && strings.Contains(k, " "+other+" ")
	})
}
