// Package mask decides what may be told of a URL, a header, a body or an
// error. Nothing else in heed writes such a thing into a log, an error, a
// metric or a page.
//
// A URL is told as endpoint and path template: segments that carry an
// identifier become {id}, and the query is dropped. Types whose values are
// secret print as a mask whatever verb or encoder is used.
//
// What is told is chosen by what is known to be harmless, not by what is known
// to be secret: a segment, a word or a value that is not recognised is masked.
// One thing it cannot know: a plain word in a path that is a person's name.
//
// The package is pure.
package mask

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Path is the path of a request. However it is printed, it shows its template.
type Path string

// String returns the template.
func (p Path) String() string { return Template(string(p)) }

// GoString returns the template, quoted.
func (p Path) GoString() string { return strconv.Quote(p.String()) }

// MarshalText returns the template.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Format prints the template, whatever the verb.
func (p Path) Format(f fmt.State, verb rune) { show(f, verb, p.String()) }

// Secret is a string that is never printed. string(s) is the secret itself. It
// is no key for a map: encoding/json writes keys of a string type as they are.
type Secret string

// hidden stands for a secret.
const hidden = "[secret]"

// String returns [secret], or nothing for the empty Secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString returns the mask, quoted.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText returns the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Format prints the mask, whatever the verb.
func (s Secret) Format(f fmt.State, verb rune) { show(f, verb, s.String()) }

// show prints text that is already masked. Verbs that would quote or encode
// keep their width, and no verb reaches the original.
func show(f fmt.State, verb rune, text string) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = strconv.Quote(text)
	}
	if width, ok := f.Width(); ok {
		if f.Flag('-') {
			width = -width
		}
		fmt.Fprintf(f, "%*s", width, text)
		return
	}
	fmt.Fprint(f, text)
}

// Fingerprint tells secrets apart without telling them: the first eight
// hexadecimal digits of a hash. It is for comparing only. Somebody who can
// guess a secret can check the guess, so it is no way to publish a weak one.
func Fingerprint(secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("heed fingerprint\x00" + secret))
	return hex.EncodeToString(sum[:4])
}
