package provider_test

import (
	"strings"
	"testing"

	"github.com/heedproject/heed/provider"
)

// fewest is how many exchanges a profile shows at least.
const fewest = 6

func exchanges(t *testing.T, profile string) []provider.Exchange {
	t.Helper()
	all, err := provider.Exchanges(profile)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestGoldenExchangesMeanWhatTheyShould(t *testing.T) {
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		j, err := p.Judge()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range exchanges(t, name) {
			t.Run(name+"/"+x.Name, func(t *testing.T) {
				got := j.Try(&x)
				for _, difference := range x.Differs(&got) {
					t.Error(difference)
				}
			})
		}
	}
}

func TestEveryProfileShowsSixExchanges(t *testing.T) {
	for _, name := range provider.Names() {
		if got := len(exchanges(t, name)); got < fewest {
			t.Errorf("%s: got %d golden exchanges, want %d or more", name, got, fewest)
		}
	}
}

func TestEveryRuleIsMatchedByAGoldenExchange(t *testing.T) {
	matched := map[string]bool{}
	for _, name := range provider.Names() {
		for _, x := range exchanges(t, name) {
			matched[x.Expect.Rule] = true
		}
	}
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Rules {
			if !matched[r.ID] {
				t.Errorf("rule %s is matched by no golden exchange", r.ID)
			}
		}
	}
}

func TestWhatIsExplainedIsWhatDecided(t *testing.T) {
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		j, err := p.Judge()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range exchanges(t, name) {
			o, why := j.Explain(&x)
			held := ""
			for _, s := range why.Steps {
				if s.Held {
					held = s.Rule
				}
			}
			if o.Ruled && held != o.Verdict.Rule {
				t.Errorf("%s/%s: got %q held, want %q", name, x.Name, held, o.Verdict.Rule)
			}
			if why.Wait != o.Verdict.Wait && held == o.Verdict.Rule {
				t.Errorf("%s/%s: got a wait of %v explained, want %v", name, x.Name, why.Wait, o.Verdict.Wait)
			}
		}
	}
}

func TestRulesBearTheNameOfTheirProfile(t *testing.T) {
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Facts {
			if f.Block == "rules" && !strings.HasPrefix(f.About, f.From+"/") {
				t.Errorf("rule %s of %s does not bear its name", f.About, f.From)
			}
		}
	}
}
