package pack

import (
	"fmt"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/alma"
	"github.com/heedproject/heed/sim/pack/folio"
	"github.com/heedproject/heed/sim/pack/gcs"
	"github.com/heedproject/heed/sim/pack/generic"
	"github.com/heedproject/heed/sim/pack/github"
	"github.com/heedproject/heed/sim/pack/hubspot"
	"github.com/heedproject/heed/sim/pack/jira"
	"github.com/heedproject/heed/sim/pack/kalshi"
	"github.com/heedproject/heed/sim/pack/llm"
	"github.com/heedproject/heed/sim/pack/nominatim"
	"github.com/heedproject/heed/sim/pack/shopify"
	"github.com/heedproject/heed/sim/pack/sierra"
	"github.com/heedproject/heed/sim/pack/stripe"
	"github.com/heedproject/heed/sim/pack/wfs"
	"github.com/heedproject/heed/sim/pack/wms"
)

// table lists the packs. A new one is added here and nowhere else.
var table = []func() sim.Pack{
	generic.Pack,
	alma.Pack,
	folio.Pack,
	gcs.Pack,
	github.Pack,
	hubspot.Pack,
	jira.Pack,
	kalshi.Pack,
	llm.Anthropic,
	llm.OpenAI,
	nominatim.Pack,
	shopify.Pack,
	shopify.GraphQL,
	sierra.Pack,
	stripe.Pack,
	wfs.Pack,
	wms.Pack,
}

// All returns every pack.
func All() []sim.Pack {
	all := make([]sim.Pack, len(table))
	for i, p := range table {
		all[i] = p()
	}
	return all
}

// Names returns the names of all packs.
func Names() []string {
	var names []string
	for _, p := range All() {
		names = append(names, p.Name)
	}
	return names
}

// Named returns the packs with these names in this order, each once.
func Named(names ...string) ([]sim.Pack, error) {
	var found []sim.Pack
	all := All()
next:
	for _, name := range names {
		for _, p := range found {
			if p.Name == name {
				return nil, fmt.Errorf("pack %q is named twice; name it once", name)
			}
		}
		for _, p := range all {
			if p.Name == name {
				found = append(found, p)
				continue next
			}
		}
		return nil, fmt.Errorf("there is no pack %q; use one of %s", name, strings.Join(Names(), ", "))
	}
	return found, nil
}
