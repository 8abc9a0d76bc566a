package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
)

// Request is one that each case has behind it when it begins.
type Request struct {
	// Do is a method and a path, such as "POST /v1/charges".
	Do     string
	Header map[string]string
	Body   string
}

// apart keeps the ids of such requests away from those of later ones.
const apart = 1 << 20

// play does the requests with which a case begins. They pass no step, limit
// or authorization; journal and ledger know nothing of them, no webhook tells
// of them. failed, if not nil, is told of those that fail. The case is locked,
// or nobody's yet.
func (c *Case) play(failed func(i int, p Problem)) {
	hooks := c.receivers.list
	c.receivers.list = nil
	c.playing = true
	defer func() { c.receivers.list, c.playing = hooks, false }()
	for i, asked := range c.realm.world.Begin {
		if p := c.playOne(asked, (i+1)*apart); p != nil && failed != nil {
			failed(i, *p)
		}
	}
	c.ledger = ledger{}
}

// rehearse plays the requests in a case that nobody sees, and says which fail.
func (a *realm) rehearse() (bad []Problem) {
	if len(a.world.Begin) == 0 {
		return nil
	}
	stage := *a
	stage.world.Clock = Clock{Stepped: true}
	stage.world.JournalSize, stage.world.Webhooks, stage.world.Begin = 1, nil, nil
	trial := newCase(&stage, "")
	defer trial.end()
	stage.world.Begin = a.world.Begin
	trial.play(func(i int, p Problem) { bad = append(bad, under(fmt.Sprintf("begin[%d]", i), []Problem{p})...) })
	return bad
}

func (c *Case) playOne(asked Request, ids int) *Problem {
	method, target, ok := strings.Cut(asked.Do, " ")
	if !ok || !strings.HasPrefix(target, "/") {
		return &Problem{Path: "do", Message: fmt.Sprintf("%q is no method and path", asked.Do), Remedy: "write such as POST /v1/charges"}
	}
	r, err := http.NewRequest(method, target, strings.NewReader(asked.Body))
	if err != nil {
		return &Problem{Path: "do", Message: fmt.Sprintf("%q cannot be a request", asked.Do), Remedy: "write such as POST /v1/charges"}
	}
	for name, value := range asked.Header {
		r.Header.Set(name, value)
	}
	r.Host = r.Header.Get("Host")
	x := &Exchange{Request: r, own: c, era: c.era, ids: ids, begun: c.clock.now(), Body: []byte(asked.Body)}
	x.route(c.realm, r.URL.Path)
	if x.pack.find(x); x.operation == nil {
		return &Problem{Path: "do", Message: asked.Do + ": no pack has such an operation", Served: true,
			Remedy: suggest(asked.Do, c.realm.routes(), "heed sim packs NAME lists what a pack has")}
	}
	x.caller = c.callerOf(x.pack, x.credential)
	if an := x.operation.Do(x); an.Status >= 400 {
		return &Problem{Message: fmt.Sprintf("%s: refused with %d: %s", asked.Do, an.Status, clip(string(bytes.TrimSpace(an.Body)))),
			Remedy: "send what the provider asks for", Served: true}
	}
	return nil
}
