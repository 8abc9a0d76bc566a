package provider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider/sheet"
)

// document is all that one file says.
type document struct {
	name, title, extends string

	hosts     []string
	terms     *Terms // what endpoints say too
	key       idempotency
	buckets   []bucket
	auth      []auth
	paging    []paging
	batches   []batch
	streams   []stream
	bans      []ban
	recipes   []recipe
	fixups    []fixup
	notes     []note
	exchanges []Exchange
}

var hostPattern = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// table is the grammar of a profile.
func (d *document) table() sheet.Block {
	fields := append([]sheet.Field{
		{Name: "name", Doc: "The name of the profile.", Required: true, Value: ident(&d.name)},
		{Name: "title", Doc: "What it is about.", Required: true, Value: sheet.Text(&d.title)},
		{Name: "extends", Doc: "The built-in profile whose rules and hints stand behind its own.", Value: sheet.OneOf(&d.extends, names...)},
		{Name: "hosts", Doc: "Where the API is found: told.", Value: sheet.List(&d.hosts, host)},
	}, d.words()...)
	return sheet.Block{Fields: append(fields, []sheet.Field{
		{Name: "retry_override", Doc: "Headers by which the server says whether to repeat.",
			Value: sheet.Append(&d.terms.Overrides, func(o *Override) sheet.Value { return o.table() })},
		{Name: "fixups", Doc: "What every request must have.", Value: sheet.List(&d.fixups, func(x *fixup) sheet.Value { return x.table() })},
		{Name: "buckets", Doc: "The limits of the provider.", Value: sheet.List(&d.buckets, func(b *bucket) sheet.Value { return b.table() })},
		{Name: "auth", Doc: "How one is known to it.", Value: sheet.List(&d.auth, func(a *auth) sheet.Value { return a.table() })},
		{Name: "paging", Doc: "How to walk over lists, and what proves that all came.", Value: sheet.List(&d.paging, func(p *paging) sheet.Value { return p.table() })},
		{Name: "batch", Doc: "Answers that hold answers.", Value: sheet.List(&d.batches, func(b *batch) sheet.Value { return b.table() })},
		{Name: "stream", Doc: "Answers that can fail after their 200.", Value: sheet.List(&d.streams, func(s *stream) sheet.Value { return s.table() })},
		{Name: "ban_counters", Doc: "What ends in a ban.", Value: sheet.List(&d.bans, func(b *ban) sheet.Value { return b.table() })},
		{Name: "recipes", Doc: "Look-ups that find out whether a write was done.", Value: sheet.List(&d.recipes, func(c *recipe) sheet.Value { return c.table() })},
		{Name: "notes", Doc: "Facts that fit nowhere else.", Value: sheet.List(&d.notes, func(n *note) sheet.Value { return n.table() })},
		exchangesField(&d.exchanges),
	}...), Check: func(sheet.Read) { d.apply() }}
}

// words are those of an endpoint, with what only a profile knows.
func (d *document) words() []sheet.Field {
	fields := d.terms.Fields()
	for i := range fields {
		switch f := &fields[i]; f.Name {
		case "rules":
			f.Value = sheet.Append(&d.terms.Rules, func(r *Rule) sheet.Value { return r.told() })
		case "hints":
			f.Value = d.terms.hintFields((*Hint).told)
		case "idempotency":
			f.Value = d.idempotency()
		}
	}
	return fields
}

func (d *document) idempotency() sheet.Block {
	b := keyFields(&d.terms.Policy.Key)
	b.Fields = append(b.Fields, d.key.fields()...)
	return b
}

// apply puts into the terms what other blocks say of them.
func (d *document) apply() {
	for i := range d.buckets {
		if b := &d.buckets[i]; b.Pace {
			b.pace(&d.terms.Policy.Limits)
			d.terms.LimitGrade = b.Grade
		}
	}
	for _, x := range d.fixups {
		for name, value := range x.Query {
			if d.terms.Query == nil {
				d.terms.Query = map[string]string{}
			}
			d.terms.Query[name] = value
		}
	}
}

// facts collects what is known.
type facts struct {
	from string
	all  []Known
}

// add puts down the i-th entry of a block.
func (f *facts) add(i int, k Known) {
	k.From, k.path = f.from, fmt.Sprintf("%s[%d]", k.Block, i)
	f.all = append(f.all, k)
}

// known lists the facts of the document n, in the order in which they matter.
func (d *document) known(n *sheet.Node) []Known {
	f := facts{from: d.name}
	for i := range d.terms.Rules {
		r := &d.terms.Rules[i]
		f.add(i, Known{Block: "rules", About: r.ID, Says: r.says(), Used: true, Fact: r.Fact})
	}
	for i := range d.terms.Overrides {
		o := &d.terms.Overrides[i]
		f.add(i, Known{Block: "retry_override", About: o.Override.Header, Says: says(o.table(), "header"), Used: true, Fact: o.Fact})
	}
	for i := range d.terms.Hints {
		h := &d.terms.Hints[i]
		f.add(i, Known{Block: "hints.sources", About: h.Header, Says: says(h.told(), "header", "observe_only"), Used: !h.ObserveOnly, Fact: h.Fact})
	}
	f.all = append(f.all, d.blocks(n)...)
	for i := range d.fixups {
		x := &d.fixups[i]
		f.add(i, Known{Block: "fixups", About: about(x.Header, "query"), Says: says(x.table(), "header"), Used: x.Query != nil, Fact: x.Fact})
	}
	for i := range d.buckets {
		b := &d.buckets[i]
		f.add(i, Known{Block: "buckets", About: b.ID, Says: says(b.table(), "id", "pace"), Used: b.Pace, Fact: b.Fact})
	}
	d.told(&f)
	return f.all
}

// told lists the facts that nobody acts on.
func (d *document) told(f *facts) {
	for i, x := range d.auth {
		f.add(i, Known{Block: "auth", About: x.Kind, Says: says(x.table(), "kind"), Fact: x.Fact})
	}
	for i, x := range d.paging {
		f.add(i, Known{Block: "paging", About: x.Kind, Says: says(x.table(), "kind"), Fact: x.Fact})
	}
	for i, x := range d.batches {
		f.add(i, Known{Block: "batch", About: x.Path, Says: says(x.table(), "path"), Fact: x.Fact})
	}
	for i, x := range d.streams {
		f.add(i, Known{Block: "stream", About: x.Format, Says: says(x.table(), "format"), Fact: x.Fact})
	}
	for i, x := range d.bans {
		f.add(i, Known{Block: "ban_counters", About: x.ID, Says: says(x.table(), "id"), Fact: x.Fact})
	}
	for i, x := range d.recipes {
		f.add(i, Known{Block: "recipes", About: x.ID, Says: says(x.table(), "id"), Fact: x.Fact})
	}
	for i, x := range d.notes {
		f.add(i, Known{Block: "notes", Says: x.Text, Fact: x.Fact})
	}
}

// blocks lists the facts of the blocks that stand there once, if they do.
func (d *document) blocks(n *sheet.Node) []Known {
	var all []Known
	t := d.terms
	if n.Get("limits") != nil {
		all = append(all, Known{Block: "limits", About: "limits", Says: says(written(t.limitFields(), n.Get("limits"))), Used: true, From: d.name,
			Fact: Fact{Origin: t.Policy.Limits.Source, Grade: t.LimitGrade}, path: "limits"})
	}
	if key := n.Get("idempotency"); key != nil {
		all = append(all, Known{Block: "idempotency", About: about(t.Policy.Key.Header, d.key.Field), Says: says(written(d.idempotency(), key), "header"),
			Used: t.Policy.Key.Header != "", From: d.name, Fact: d.key.Fact, path: "idempotency"})
	}
	return all
}

// written is b with the fields that are written in n, so that defaults are not
// told as facts.
func written(b sheet.Block, n *sheet.Node) sheet.Block {
	b.Fields = slices.DeleteFunc(slices.Clone(b.Fields), func(f sheet.Field) bool { return n.Get(f.Name) == nil })
	return b
}

func about(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// checker finds what is wrong between parts of a document.
type checker struct {
	*sheet.Reader
	d    *document
	base *Profile
	own  []Known
}

// names are those of one block, the base's included.
func (c *checker) names(block string) []string {
	var all []string
	for _, k := range slices.Concat(c.own, c.base.Facts) {
		if k.Block == block {
			all = append(all, k.About)
		}
	}
	return all
}

func (c *checker) bad(path, remedy, format string, args ...any) {
	n, _ := c.Place(path)
	c.Problem(n, path, remedy, format, args...)
}

// refer reports a name that is no entry of block.
func (c *checker) refer(path, block, name string) {
	if name == "" {
		return
	}
	known := c.names(block)
	if slices.Contains(known, name) {
		return
	}
	remedy := "name an entry of " + block
	if guess := sheet.Near(name, known); guess != "" {
		remedy = "did you mean " + guess + "?"
	}
	c.bad(path, remedy, "%.60q is no entry of %s", name, block)
}

// references reports names of what is not there.
func (c *checker) references() {
	for i, r := range c.d.terms.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		c.refer(at+".verify", "recipes", r.Verify)
		for j, id := range r.Counts {
			c.refer(fmt.Sprintf("%s.counts[%d]", at, j), "ban_counters", id)
		}
	}
	for i, h := range c.d.terms.Hints {
		c.refer(fmt.Sprintf("hints.sources[%d].bucket", i), "buckets", h.Bucket)
	}
	for i, b := range c.d.buckets {
		for j, id := range b.Shares {
			c.refer(fmt.Sprintf("buckets[%d].shares[%d]", i, j), "buckets", id)
		}
	}
	for i, a := range c.d.auth {
		c.refer(fmt.Sprintf("auth[%d].expired", i), "rules", a.Expired)
		c.refer(fmt.Sprintf("auth[%d].denied", i), "rules", a.Denied)
	}
	c.refer("idempotency.in_flight", "rules", c.d.key.InFlight)
	c.refer("idempotency.mismatch", "rules", c.d.key.Mismatch)
	c.refer("idempotency.lost", "recipes", c.d.key.Lost)
}

// twice reports entries of one block that bear the same name.
func (c *checker) twice() {
	seen := map[string]bool{}
	for _, k := range c.own {
		name := k.Block + " " + k.About
		if seen[name] && k.About != "" && slices.Contains([]string{"rules", "buckets", "recipes", "ban_counters"}, k.Block) {
			c.bad(k.path+".id", "give each a name of its own", "%.60q names two entries of %s", k.About, k.Block)
		}
		seen[name] = true
	}
}

// pace reports limits that are said twice.
func (c *checker) pace(n *sheet.Node) {
	rates, caps := 0, 0
	limits := n.Get("limits")
	if limits != nil && limits.Get("rate") != nil {
		rates++
	}
	if limits != nil && limits.Get("concurrency") != nil {
		caps++
	}
	for i, b := range c.d.buckets {
		if !b.Pace {
			continue
		}
		count := &rates
		if b.Kind == concurrency {
			count = &caps
		}
		if *count++; *count > 1 {
			c.bad(fmt.Sprintf("buckets[%d].pace", i), "let heed pace by one of them", "there is another limit of the same kind to pace by")
		}
	}
}

// rooms reports what the rooms say of the terms.
func (c *checker) rooms() {
	t := c.d.terms
	_, problems := classify.New(t.ownRules())
	var sources []hint.Source
	for _, h := range t.Hints {
		sources = append(sources, h.Source)
	}
	_, more := hint.NewReader(append([]hint.Source{}, sources...))
	for _, p := range slices.Concat(problems, more, t.Policy.WithDefaults().Validate()) {
		p.Path = strings.Replace(p.Path, ".when.statuses[", ".when.status[", 1)
		p.Path = strings.Replace(p.Path, "hints[", "hints.sources[", 1)
		p.Path = c.Listed(p.Path)
		c.room(p)
	}
}

// room reports a problem of a room, unless reading has said so already: of the
// same place, or of the formula whose vars it is about.
func (c *checker) room(p policy.Problem) {
	source, _, ofVars := strings.Cut(p.Path, ".vars")
	for _, known := range c.Problems {
		if strings.HasPrefix(known.Path, p.Path) || strings.HasPrefix(p.Path, known.Path+".") || ofVars && known.Path == source+".calc" {
			return
		}
	}
	c.bad(p.Path, p.Remedy, "%s", p.Message)
}

// sourced reports facts that do not say where they are known from.
func (c *checker) sourced(n *sheet.Node) {
	for _, k := range c.own {
		if k.Origin == "" {
			c.bad(k.path+".source", "name the page or the code", "the fact has no source")
		}
		if k.Grade == "" {
			c.bad(k.path+".grade", "use one of documented, seen, reported, general, unverified", "the fact has no grade")
		}
	}
	if n.Get("query") != nil {
		c.bad("query", "write fixups: [{query: …, source: …, grade: …}]", "the fact has no source and no grade")
	}
}
