package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heedproject/heed/provider"
)

type providerShow struct {
	Name string `arg:"" help:"A built-in profile (heed provider list), or the file of one of your own."`
	All  bool   `help:"Show the facts of the profile that it extends too."`
	JSON bool   `help:"Print JSON."`
}

// Help is what heed provider show --help says beside the flags.
func (providerShow) Help() string {
	return `USE says what heed does with a fact: used, it acts on it; told, it is there for people. GRADE says how well it is known: documented by the provider, seen in code or test data, reported by others, general knowledge, or unverified.

Examples:

    heed provider show stripe
    heed provider show ./our-ils.yaml --all --json`
}

// fact is one fact as JSON.
type fact struct {
	Block   string `json:"block"`
	About   string `json:"about,omitempty"`
	Says    string `json:"says"`
	Used    bool   `json:"used"`
	Grade   string `json:"grade,omitempty"`
	Source  string `json:"source,omitempty"`
	Checked string `json:"checked,omitempty"`
	From    string `json:"from"`
}

// Run shows the profile.
func (c *providerShow) Run(sh *shell) error {
	p, err := profile(c.Name)
	if err != nil {
		return err
	}
	facts := []fact{}
	for _, f := range p.Facts {
		if c.All || f.From == p.Name {
			facts = append(facts, fact{f.Block, f.About, f.Says, f.Used, string(f.Grade), f.Origin, f.Checked, f.From})
		}
	}
	if c.JSON {
		e := json.NewEncoder(sh.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Name    string   `json:"name"`
			Title   string   `json:"title"`
			Extends string   `json:"extends,omitempty"`
			Hosts   []string `json:"hosts,omitempty"`
			Facts   []fact   `json:"facts"`
		}{p.Name, p.Title, p.Extends, p.Hosts, facts})
	}
	if err := c.head(sh, &p, facts); err != nil {
		return err
	}
	for len(facts) > 0 {
		n := 1
		for n < len(facts) && facts[n].Block == facts[0].Block && facts[n].From == facts[0].From {
			n++
		}
		if err := section(sh, &p, facts[:n]); err != nil {
			return err
		}
		facts = facts[n:]
	}
	return nil
}

// head tells what the profile is, and how much of it can be relied on.
func (c *providerShow) head(sh *shell, p *provider.Profile, facts []fact) error {
	used, doubt := 0, 0
	for _, f := range facts {
		if f.Used {
			used++
		}
		if provider.Grade(f.Grade).Doubtful() {
			doubt++
		}
	}
	rows := [][2]string{{"profile", p.Name + ", " + p.Title}}
	if len(p.Hosts) > 0 {
		rows = append(rows, [2]string{"hosts", strings.Join(p.Hosts, ", ")})
	}
	if p.Extends != "" {
		text := p.Extends + ", whose rules and headers stand behind"
		if !c.All {
			text += " (--all shows them too)"
		}
		rows = append(rows, [2]string{"extends", text})
	}
	rows = append(rows, [2]string{"facts", fmt.Sprintf("%d, of which heed acts on %d; %d in doubt (general or unverified)", len(facts), used, doubt)})
	return sh.pairs(rows)
}

// section writes the facts of one block.
func section(sh *shell, p *provider.Profile, facts []fact) error {
	title := facts[0].Block
	if facts[0].From != p.Name {
		title += " of " + facts[0].From
	}
	if _, err := fmt.Fprintf(sh.out, "\n%s\n", title); err != nil {
		return err
	}
	t := grid{{"ABOUT", "WHAT IS SO", "USE", "GRADE", "SOURCE"}}
	for _, f := range facts {
		use := "told"
		if f.Used {
			use = "used"
		}
		t = append(t, []string{f.About, f.Says, use, f.Grade, f.Source})
	}
	wrap := []int{0, 4, 1}
	if sh.width() >= usual { // names are searched for, so they stay whole
		wrap = wrap[1:]
	}
	if facts[0].Block == "notes" {
		t, wrap = t.without(0), []int{3, 0}
	}
	return t.write(sh.out, columns{Width: sh.width(), Wrap: wrap, Indent: "  "})
}

// without is t less one column.
func (t grid) without(column int) grid {
	out := make(grid, len(t))
	for i, row := range t {
		out[i] = append(append([]string{}, row[:column]...), row[column+1:]...)
	}
	return out
}
