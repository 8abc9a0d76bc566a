package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/heedproject/heed/provider"
)

type providerCmd struct {
	List    providerList    `cmd:"" help:"List the built-in profiles."`
	Show    providerShow    `cmd:"" help:"Show what is known of a provider, from where, and what heed acts on."`
	Check   providerCheck   `cmd:"" help:"Check a profile of your own: its form, its facts and its golden exchanges."`
	Explain providerExplain `cmd:"" help:"Say what an answer means to a profile, which rule decided and why, and what wait follows."`
	Schema  providerSchema  `cmd:"" help:"Print the JSON Schema of a profile, for editors."`
}

type providerSchema struct{}

// Run prints the schema.
func (providerSchema) Run(sh *shell) error {
	_, err := sh.out.Write(provider.Schema())
	return err
}

type providerList struct {
	JSON bool `help:"Print JSON, one object a line."`
}

// listed is one line of heed provider list.
type listed struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Rules     int    `json:"rules"`
	Headers   int    `json:"headers"`
	Facts     int    `json:"facts"`
	Doubtful  int    `json:"doubtful"`
	Exchanges int    `json:"exchanges"`
}

// Run lists the profiles.
func (c *providerList) Run(sh *shell) error {
	t := grid{{"NAME", "RULES", "HEADERS", "FACTS", "IN DOUBT", "EXCHANGES", "TITLE"}}
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			return err
		}
		exchanges, err := provider.Exchanges(name)
		if err != nil {
			return err
		}
		one := summary(&p)
		one.Exchanges = len(exchanges)
		if c.JSON {
			if err := json.NewEncoder(sh.out).Encode(one); err != nil {
				return err
			}
			continue
		}
		t = append(t, []string{one.Name, fmt.Sprint(one.Rules), fmt.Sprint(one.Headers), fmt.Sprint(one.Facts),
			fmt.Sprint(one.Doubtful), fmt.Sprint(one.Exchanges), one.Title})
	}
	if c.JSON {
		return nil
	}
	return t.write(sh.out, columns{Width: sh.width(), Wrap: []int{6}})
}

// summary counts what p itself says.
func summary(p *provider.Profile) listed {
	one := listed{Name: p.Name, Title: p.Title, Exchanges: len(p.Exchanges)}
	for _, f := range p.Facts {
		if f.From != p.Name {
			continue
		}
		one.Facts++
		if f.Grade.Doubtful() {
			one.Doubtful++
		}
		switch f.Block {
		case "rules", "retry_override":
			one.Rules++
		case "hints.sources":
			one.Headers++
		}
	}
	return one
}

// profile returns the built-in profile called name, or the one in that file.
func profile(name string) (provider.Profile, error) {
	if !strings.ContainsAny(name, `/\.`) {
		p, err := provider.Get(name)
		if err != nil {
			err = usage(err)
		}
		return p, err
	}
	data, err := slurp(name)
	if err != nil {
		return provider.Profile{}, usage(err)
	}
	p, problems := provider.Read(name, data)
	if len(problems) > 0 {
		return p, usage(fmt.Errorf("the profile %s has %d problem(s), the first: %v; heed provider check %s tells all", name, len(problems), problems[0], name))
	}
	return p, nil
}

// slurp reads a file, as far as a document may be long.
func slurp(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f, name)
}

func bounded(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, provider.MaxPaste+1))
	if err == nil && len(data) > provider.MaxPaste {
		err = fmt.Errorf("%s is longer than 4 MiB", name)
	}
	return data, err
}

type providerCheck struct {
	File   string `arg:"" help:"The profile to check."`
	Golden string `placeholder:"FILE" help:"Exchanges that the profile must read rightly, besides those in the profile itself."`
}

// Help is what heed provider check --help says beside the flags.
func (providerCheck) Help() string {
	return `Exits with 0 when the profile can be used and reads every exchange as it should, with 1 when not.

Examples:

    heed provider check our-ils.yaml
    heed provider check our-ils.yaml --golden our-ils.golden.yaml`
}

// Run checks the profile.
func (c *providerCheck) Run(sh *shell) error {
	data, err := slurp(c.File)
	if err != nil {
		return usage(err)
	}
	p, problems := provider.Read(c.File, data)
	exchanges := p.Exchanges
	if c.Golden != "" {
		data, err := slurp(c.Golden)
		if err != nil {
			return usage(err)
		}
		more, bad := provider.ReadExchanges(c.Golden, data)
		exchanges, problems = append(exchanges, more...), append(problems, bad...)
	}
	for _, problem := range problems {
		sh.say("%v", problem)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s: %d problem(s)", c.File, len(problems))
	}
	wrong, err := sh.try(&p, exchanges)
	if err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d of %d exchange(s) are not read as they should be", c.File, wrong, len(exchanges))
	}
	return c.report(sh, &p, len(exchanges))
}

// try runs exchanges and says which of them p reads wrongly.
func (sh *shell) try(p *provider.Profile, exchanges []provider.Exchange) (wrong int, err error) {
	j, err := p.Judge()
	if err != nil {
		return 0, err
	}
	for i := range exchanges {
		x := &exchanges[i]
		o := j.Try(x)
		differences := x.Differs(&o)
		for _, d := range differences {
			sh.say("%s:%d: %s: %s", x.File, x.Line, x.Name, d)
		}
		if len(differences) > 0 {
			wrong++
		}
	}
	return wrong, nil
}

func (c *providerCheck) report(sh *shell, p *provider.Profile, exchanges int) error {
	one, bare := summary(p), 0
	for _, f := range p.Facts {
		if f.From == p.Name && (f.Origin == "" || f.Grade == "") {
			bare++
		}
	}
	if bare > 0 {
		sh.say("heed: warning: %d fact(s) do not say from where and how well they are known; add source and grade", bare)
	}
	if exchanges == 0 {
		sh.say("heed: warning: no exchange shows that the profile reads its provider rightly; add exchanges, or name a file with --golden")
	}
	_, err := fmt.Fprintf(sh.out, "%s: ok, %d rule(s), %d header(s), %d fact(s), %d of them in doubt, %d exchange(s)\n",
		c.File, one.Rules, one.Headers, one.Facts, one.Doubtful, exchanges)
	return err
}
