package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
)

// serveGolden gives the answer of a golden exchange of the provider. Nothing
// happened. What the exchange is expected to mean is not read here.
func serveGolden(x *Exchange) {
	for _, e := range x.own.api.golden(x.pack) {
		if e.name == x.step.said {
			x.write(e.answer)
			return
		}
	}
	x.refuse(Refusal{Kind: BadRequest, Detail: "this provider has no golden exchange " + strconv.Quote(x.step.said)})
}

// goldenExchange is the half of a golden exchange that a provider plays.
type goldenExchange struct {
	name   string
	answer Answer
}

// golden reads the exchanges of p once.
func (a *API) golden(p *pack) []goldenExchange {
	p.goldenOnce.Do(func() {
		name := p.Golden
		if name == "" {
			name = p.Name
		}
		p.goldens, p.goldenErr = readGolden(name)
	})
	return p.goldens
}

func readGolden(name string) ([]goldenExchange, error) {
	data, err := golden.Files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there are no golden exchanges of %s", name)
	}
	doc, problems := sheet.ReadYAML(name+".yaml", data)
	if len(problems) > 0 {
		return nil, fmt.Errorf("golden exchanges: %s", problems[0])
	}
	list := doc.Get("exchanges")
	if list == nil {
		return nil, fmt.Errorf("golden exchanges of %s: there is no list", name)
	}
	var all []goldenExchange
	for _, n := range list.Items {
		e := goldenExchange{name: textOf(n, "name"), answer: Answer{Status: 200}}
		if r := n.Get("response"); r != nil {
			e.answer.Status, err = strconv.Atoi(textOf(r, "status"))
			if err != nil {
				return nil, fmt.Errorf("golden exchange %s of %s: its status is no number", e.name, name)
			}
			e.answer.Body = []byte(textOf(r, "body"))
			if h := r.Get("header"); h != nil {
				for _, m := range h.Members {
					e.answer.Set(m.Key.Text, m.Value.Text)
				}
			}
		}
		all = append(all, e)
	}
	return all, nil
}

func textOf(n *sheet.Node, name string) string {
	if v := n.Get(name); v != nil {
		return v.Text
	}
	return ""
}

// names of the golden exchanges, for a message.
func goldenNames(all []goldenExchange) string {
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.name
	}
	return strings.Join(names, "; ")
}
