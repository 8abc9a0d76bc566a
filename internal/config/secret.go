package config

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/provider/sheet"
)

// The kinds of references.
const (
	fromEnv   = "env:"
	fromFile  = "file:"
	fromValue = "value:"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// String returns the reference. A secret that was written into the file itself
// is masked.
func (s Secret) String() string {
	if strings.HasPrefix(string(s), fromEnv) || strings.HasPrefix(string(s), fromFile) || s == "" {
		return string(s)
	}
	return fromValue + "[secret]"
}

// Format prints the reference, whatever the verb.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		fmt.Fprintf(f, "%q", s.String())
		return
	}
	fmt.Fprint(f, s.String())
}

// MarshalText returns the reference.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Variable is the name of the environment variable that holds the secret, if one
// does.
func (s Secret) Variable() (string, bool) { return strings.CutPrefix(string(s), fromEnv) }

// Inline tells that the secret itself stands in the file.
func (s Secret) Inline() bool { return s != "" && strings.HasPrefix(s.String(), fromValue) }

// maxSecret bounds what is taken as a secret; more is a wrong file.
const maxSecret = 64 << 10

// Secrets are those that the configuration names, by where it does. Some may be
// empty.
func (c *Config) Secrets() iter.Seq2[string, Secret] {
	return func(yield func(string, Secret) bool) {
		more := yield("listen.admin_token", c.Listen.AdminToken)
		next := func(path string, s Secret) { more = more && yield(path, s) }
		if q := c.Queue; q != nil {
			next("queue.dsn", q.DSN)
			next("queue.callbacks.secret", q.Callbacks.Secret)
			for i, key := range q.Keys {
				next(fmt.Sprintf("queue.keys[%d]", i), key)
			}
		}
		for i, client := range c.Clients {
			next(fmt.Sprintf("clients[%d].token", i), client.Token)
		}
		for _, e := range c.Endpoints {
			at := "endpoints." + e.Name + ".auth."
			next(at+"value", e.Auth.Value)
			next(at+"user", e.Auth.User)
			next(at+"password", e.Auth.Password)
		}
	}
}

// Resolve gets the secret. The empty Secret is no secret and no error. One
// line end behind it is cut off, as editors put one there; any other control
// character is refused, because the secret goes into a header.
func (s Secret) Resolve(getenv func(string) string, readFile func(string) ([]byte, error)) (mask.Secret, error) {
	if s == "" {
		return "", nil
	}
	text, err := s.fetch(getenv, readFile)
	if err != nil {
		return "", err
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	switch {
	case text == "":
		return "", s.missing()
	case len(text) > maxSecret:
		return "", fmt.Errorf("secret %v is longer than 64 KiB", s)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", fmt.Errorf("secret %v holds a line break or another control character", s)
	}
	return mask.Secret(text), nil
}

// Text gets what may have several lines and never goes into a header, such as
// a file of keys.
func (s Secret) Text(getenv func(string) string, readFile func(string) ([]byte, error)) (mask.Secret, error) {
	text, err := s.fetch(getenv, readFile)
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(text) == "":
		return "", s.missing()
	case len(text) > maxSecret:
		return "", fmt.Errorf("secret %v is longer than 64 KiB", s)
	}
	return mask.Secret(text), nil
}

// missing says that nothing is there, and what to do about it.
func (s Secret) missing() error {
	if name, ok := s.Variable(); ok {
		return fmt.Errorf("the environment variable %s is empty or not set: set it where heed runs", name)
	}
	return fmt.Errorf("secret %v is empty: write the secret there", s)
}

func (s Secret) fetch(getenv func(string) string, readFile func(string) ([]byte, error)) (string, error) {
	ref := string(s)
	if name, ok := strings.CutPrefix(ref, fromEnv); ok {
		return getenv(name), nil
	}
	if path, ok := strings.CutPrefix(ref, fromFile); ok {
		data, err := readFile(path)
		if err != nil {
			return "", fmt.Errorf("secret %v: %w", s, err)
		}
		return string(data), nil
	}
	if text, ok := strings.CutPrefix(ref, fromValue); ok {
		return text, nil
	}
	return "", errors.New("a secret is no reference, write env:NAME or file:/path")
}

// secret reads a reference. What is written is never quoted: it may be the
// secret itself, by mistake.
func secret(s *Secret) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) (err error) {
			*s, err = parseSecret(text)
			return err
		},
		Show:    func() (string, bool) { return s.String(), *s != "" },
		Remedy:  "write env:NAME or file:/path, never the secret itself",
		Pattern: `^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|value:.+)$`,
		Example: "env:SIERRA_KEY",
	}
}

func parseSecret(text string) (Secret, error) {
	name, env := strings.CutPrefix(text, fromEnv)
	path, file := strings.CutPrefix(text, fromFile)
	switch {
	case env && !envName.MatchString(name):
		return "", errors.New("behind env: stands no name of a variable")
	case file && !filepath.IsAbs(path):
		return "", errors.New("behind file: stands no absolute path")
	case !env && !file && (!strings.HasPrefix(text, fromValue) || text == fromValue):
		return "", errors.New("this is no reference to a secret")
	}
	return Secret(text), nil
}
