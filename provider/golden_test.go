package provider_test

import (
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
