package pack

import (
	"fmt"
	"strings"

	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
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

// All returns every pack. One of them that lists no events tells of none.
func All() []sim.Pack {
	all := make([]sim.Pack, len(table))
	for i, p := range table {
		all[i] = p()
		if all[i].Webhooks.Events == nil {
			all[i].Webhooks.Events = []string{}
		}
	}
	return all
}

// others are words for what a pack plays, and what is known under them.
var others = map[string]string{
	"payments": "stripe", "payment": "stripe", "geocoder": "nominatim", "geocoding": "nominatim", "osm": "nominatim",
	"llm": "openai or anthropic", "chatgpt": "openai", "claude": "anthropic", "storage": "gcs", "crm": "hubspot",
	"shop": "shopify or shopify-graphql", "library": "sierra, alma or folio", "gis": "wfs or wms", "maps": "wms",
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
		return nil, fmt.Errorf("there is no pack %q; %s", name, remedy(name))
	}
	return found, nil
}

// remedy says which pack may be meant, or which there are. Providers that have
// golden exchanges and no pack are played by generic.
func remedy(name string) string {
	if there, ok := others[name]; ok {
		return "use " + there
	}
	if _, err := golden.Files.Open(name + ".yaml"); err == nil {
		return "use generic with steps such as GET /**: golden(" + name + "/NAME), which give the answers that this provider is known by"
	}
	if near := sheet.Near(name, Names()); near != "" {
		return "did you mean " + near + "? There are " + strings.Join(Names(), ", ")
	}
	return "use one of " + strings.Join(Names(), ", ")
}
