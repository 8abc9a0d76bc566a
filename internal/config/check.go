package config

import (
	"fmt"
	"slices"

	"github.com/heedproject/heed/provider/sheet"
)

// checkWhole reports what is wrong between parts of the file.
func (p *parser) checkWhole() {
	p.checkListen()
	p.checkClients()
	p.checkAsync()
}

func (p *parser) bad(path, remedy, format string, args ...any) {
	n, _ := p.Place(path)
	p.Problem(n, path, remedy, format, args...)
}

func (p *parser) checkListen() {
	l, c := p.config.Listen, p.config
	if l.Data == l.Admin {
		p.bad("listen.admin", "give it another port", "the admin port is the data port")
	}
	if reach(l.Admin) && l.AdminToken == "" && !p.written("listen.admin_token") {
		p.bad("listen.admin", "set listen.admin_token, or use 127.0.0.1", "other hosts can reach the admin port, which asks for no token")
	}
	if reach(l.Data) && len(c.Clients) == 0 && !p.written("clients") {
		p.bad("listen.data", "list clients, or use 127.0.0.1", "other hosts can reach the data port, which asks for no token")
	}
}

func (p *parser) written(path string) bool {
	_, exact := p.Place(path)
	return exact
}

func (p *parser) checkClients() {
	var names []string
	var known []string
	for _, e := range p.entries {
		known = append(known, e.e.Name)
	}
	for i, c := range p.config.Clients {
		at := fmt.Sprintf("clients[%d]", i)
		if c.Name != "" && slices.Contains(names, c.Name) {
			p.bad(at+".name", "give each client a name of its own", "%q names two clients", c.Name)
		}
		names = append(names, c.Name)
		for j, name := range c.Endpoints {
			if !slices.Contains(known, name) {
				p.bad(fmt.Sprintf("%s.endpoints[%d]", at, j), meant(name, known), "%q is no endpoint of this file", name)
			}
		}
	}
}

func meant(name string, known []string) string {
	if guess := sheet.Near(name, known); guess != "" {
		return "did you mean " + guess + "?"
	}
	return "name an endpoint of this file, or leave endpoints out for all"
}
