package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heedproject/heed/internal/queue"
)

// revealedCall is a call in the clear, as the admin port tells it.
type revealedCall struct {
	Envelope  *queue.Envelope  `json:"envelope"` // nil: it is erased
	Revisions []queue.Envelope `json:"revisions"`
	Answer    *struct {
		Status int         `json:"status"`
		Header http.Header `json:"headers"`
		Body   []byte      `json:"body"`
	} `json:"answer"`
}

// print writes the call for people, in the form of HTTP messages: what is sent,
// what was answered, what it said before it was edited.
func (c *revealedCall) print(out io.Writer) error {
	var b strings.Builder
	if c.Envelope == nil {
		b.WriteString("the request is erased\n")
	} else {
		request(&b, c.Envelope)
	}
	if a := c.Answer; a != nil {
		b.WriteString("\n== answer\n")
		message(&b, fmt.Sprint(a.Status, " ", http.StatusText(a.Status)), a.Header, a.Body)
	}
	for i := range c.Revisions {
		fmt.Fprintf(&b, "\n== revision %d\n", i+1)
		request(&b, &c.Revisions[i])
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func request(b *strings.Builder, e *queue.Envelope) {
	first := e.Method + " " + e.Endpoint + " " + e.Path
	if e.Key != "" {
		first += ", idempotency key " + e.Key
	}
	message(b, first, e.Header, e.Body)
}

// message writes one HTTP message. What could play tricks with a terminal is
// quoted, and a body that is no text is only counted.
func message(b *strings.Builder, first string, h http.Header, body []byte) {
	b.WriteString(legible(first) + "\n")
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			fmt.Fprintf(b, "%s: %s\n", legible(name), legible(v))
		}
	}
	switch {
	case len(body) == 0:
	case text(body):
		b.WriteString("\n" + strings.TrimSuffix(string(body), "\n") + "\n")
	default:
		fmt.Fprintf(b, "\n(%d bytes that are no text: --json has them, as base64)\n", len(body))
	}
}

func legible(line string) string {
	if strings.ContainsFunc(line, unicode.IsControl) {
		return fmt.Sprintf("%q", line)
	}
	return line
}

// text tells whether body can be shown as it is.
func text(body []byte) bool {
	return utf8.Valid(body) && !strings.ContainsFunc(string(body), func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r)
	})
}
