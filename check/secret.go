package check

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
)

// secret is what nobody should read in the output of a client.
type secret struct {
	name  string
	forms []string // as it is, and in base64 wherever it begins
}

// newSecret is one that is called name.
func newSecret(name, value string) secret {
	s := secret{name, []string{value}}
	for before := range 3 { // characters of base64 hold six bits of a byte and its neighbours
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + value))
		s.forms = append(s.forms, text[(before*8+5)/6:len(text)-1])
	}
	return s
}

// secrets are those that a session is told.
func (s Setting) secrets() []secret {
	if s.APIKey == "" {
		return nil
	}
	return []secret{newSecret("the API key", s.APIKey), newSecret("the secret of the webhooks", hookSecret)}
}

// seek tells which of the secrets are in text.
func seek(text []byte, all []secret) (found []string) {
	for _, s := range all {
		for i, f := range s.forms {
			if name := s.name + []string{"", " in base64"}[min(i, 1)]; bytes.Contains(text, []byte(f)) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

// longest is how many bytes the longest form of a secret has.
func longest(all []secret) (n int) {
	for _, s := range all {
		for _, f := range s.forms {
			n = max(n, len(f))
		}
	}
	return n
}

// hide takes the secrets out of a text that is shown.
func hide(text string, all []secret) string {
	for _, s := range all {
		for _, f := range s.forms {
			text = strings.ReplaceAll(text, f, "•••")
		}
	}
	return text
}

// plainly is a text of a client as it may be shown: one line, without what
// steers a terminal, and not endless.
func plainly(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if all := []rune(text); len(all) > most {
		return string(all[:most]) + "…"
	}
	return text
}
