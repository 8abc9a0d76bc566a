package scenario

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/heedproject/heed/provider/sheet"
	"github.com/heedproject/heed/sim"
)

// request is one that a case has behind it: a method and a path, or these with
// header and body.
func request(q *sim.Request) sheet.Value {
	var body, form content
	return sheet.Short{Value: sheet.Text(&q.Do), Long: sheet.Block{
		Fields: []sheet.Field{
			{Name: "do", Doc: "Method and path, such as POST /v1/charges.", Value: sheet.Text(&q.Do), Required: true},
			{Name: "header", Doc: "Header fields.", Value: sheet.Map[string]{P: &q.Header, One: sheet.Text}},
			{Name: "body", Doc: "The body: text, or what is to be JSON.", Value: &body},
			{Name: "form", Doc: "The body as a form.", Value: &form},
		},
		Check: func(m sheet.Read) {
			switch {
			case body.node != nil && form.node != nil:
				m.Bad("form", "keep one of them", "there is a body already")
			case body.node != nil:
				q.Body = body.text()
				if body.node.Kind != sheet.Scalar {
					setDefault(q, "application/json")
				}
			case form.node != nil && form.node.Kind != sheet.Mapping:
				m.Bad("form", "write names and values below it", "%s stands where a mapping belongs", form.node.Kind)
			case form.node != nil:
				q.Body = form.form()
				setDefault(q, "application/x-www-form-urlencoded")
			}
		},
	}}
}

func setDefault(q *sim.Request, media string) {
	for name := range q.Header {
		if strings.EqualFold(name, "Content-Type") {
			return
		}
	}
	if q.Header == nil {
		q.Header = map[string]string{}
	}
	q.Header["Content-Type"] = media
}

// content is any part of a document.
type content struct{ node *sheet.Node }

// Read implements sheet.Value.
func (c *content) Read(_ *sheet.Reader, n *sheet.Node, _ string) { c.node = n }

// Write implements sheet.Value.
func (c *content) Write() *sheet.Node { return c.node }

// Schema implements sheet.Value.
func (c *content) Schema() map[string]any { return map[string]any{} }

// text is a single value as it is, and all else as JSON.
func (c *content) text() string {
	if c.node.Kind == sheet.Scalar {
		return c.node.Text
	}
	text, _ := json.Marshal(plain(c.node)) // of values that JSON has
	return string(text)
}

func (c *content) form() string {
	v := url.Values{}
	for _, m := range c.node.Members {
		if m.Value.Kind == sheet.Scalar {
			v.Add(m.Key.Text, m.Value.Text)
		}
		for _, item := range m.Value.Items {
			v.Add(m.Key.Text, item.Text)
		}
	}
	return v.Encode()
}

// plain is n as JSON has it: a scalar without quotes may be a number, true,
// false or null.
func plain(n *sheet.Node) any {
	switch n.Kind {
	case sheet.Mapping:
		m := map[string]any{}
		for _, one := range n.Members {
			m[one.Key.Text] = plain(one.Value)
		}
		return m
	case sheet.Sequence:
		all := make([]any, len(n.Items))
		for i, one := range n.Items {
			all[i] = plain(one)
		}
		return all
	}
	switch {
	case n.IsNull():
		return nil
	case n.Plain && json.Valid([]byte(n.Text)) && n.Text[0] != '"':
		return json.RawMessage(n.Text)
	}
	return n.Text
}
