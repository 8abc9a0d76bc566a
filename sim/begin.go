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
// of them. The case is locked, or nobody's yet.
func (c *Case) play() error {
	hooks := c.receivers.list
	c.receivers.list = nil
	defer func() { c.receivers.list = hooks }()
	for i, asked := range c.realm.world.Begin {
		if err := c.playOne(asked, (i+1)*apart); err != nil {
			return &ItemError{"begin", i, err.Error()}
		}
	}
	c.ledger = ledger{}
	return nil
}

// ItemError says what is wrong with one item of World.Begin, World.Webhooks or
// World.Limits. List is begin, webhooks or limits.
type ItemError struct {
	List    string
	Index   int
	Message string
}

// Error implements error.
func (e *ItemError) Error() string { return fmt.Sprintf("%s[%d]: %s", e.List, e.Index, e.Message) }

func (c *Case) playOne(asked Request, ids int) error {
	method, target, ok := strings.Cut(asked.Do, " ")
	if !ok || !strings.HasPrefix(target, "/") {
		return fmt.Errorf("%q is no method and path, such as POST /v1/charges", asked.Do)
	}
	r, err := http.NewRequest(method, target, strings.NewReader(asked.Body))
	if err != nil {
		return fmt.Errorf("%q cannot be a request", asked.Do)
	}
	for name, value := range asked.Header {
		r.Header.Set(name, value)
	}
	r.Host = r.Header.Get("Host")
	x := &Exchange{Request: r, own: c, era: c.era, ids: ids, begun: c.clock.now(), Body: []byte(asked.Body)}
	x.route(c.realm, r.URL.Path)
	if x.pack.find(x); x.operation == nil {
		return fmt.Errorf("%s: no pack has such an operation", asked.Do)
	}
	x.caller = c.callerOf(x.pack, x.credential)
	if an := x.operation.Do(x); an.Status >= 400 {
		return fmt.Errorf("%s: refused with %d: %s", asked.Do, an.Status, clip(string(bytes.TrimSpace(an.Body))))
	}
	return nil
}
