package provider_test

import (
	"os"
	"strings"
	"testing"

	"github.com/heedproject/heed/provider"
)

func TestTheProfileInTheDocsReadsItsExchangesRightly(t *testing.T) {
	doc, err := os.ReadFile("../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```yaml\nname: ")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the docs show no profile")
	}
	p, problems := provider.Read("docs", []byte("name: "+text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	j, err := p.Judge()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Exchanges) == 0 {
		t.Error("the profile shows no exchange")
	}
	for i := range p.Exchanges {
		x := &p.Exchanges[i]
		o := j.Try(x)
		for _, difference := range x.Differs(&o) {
			t.Errorf("%s: %s", x.Name, difference)
		}
	}
}
