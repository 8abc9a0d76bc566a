package config

import (
	"slices"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// Show returns the effective settings as a heed.yaml, every default filled in.
// What a profile says of answers and headers is left to the profile. Secrets
// are shown as references.
func Show(c *Config) []byte { return sheet.YAML(c.write()) }

// ShowResolved is Show with a fingerprint beside each reference, which tells
// whether the secret is the one that was meant. The secrets are got as
// Secret.Resolve does.
func ShowResolved(c *Config, getenv func(string) string, readFile func(string) ([]byte, error)) []byte {
	root := c.write()
	finger(root, func(s Secret) (mask.Secret, error) { return s.Resolve(getenv, readFile) })
	return sheet.YAML(root)
}

func (c *Config) write() *sheet.Node {
	f := file{Config: c, defaults: newEntry(), endpoints: shown{c}}
	root := f.table().Write()
	root.Members = slices.DeleteFunc(root.Members, func(m sheet.Member) bool { return m.Key.Text == "defaults" })
	return root
}

// shown writes the endpoints in their order.
type shown struct{ c *Config }

// Read implements sheet.Value; nothing is read into what is shown.
func (s shown) Read(*sheet.Reader, *sheet.Node, string) {}

// Schema implements sheet.Value.
func (s shown) Schema() map[string]any { return map[string]any{} }

// Write implements sheet.Value.
func (s shown) Write() *sheet.Node {
	n := &sheet.Node{Kind: sheet.Mapping}
	for _, e := range s.c.Endpoints {
		terms := provider.Terms{Policy: e.Policy.WithDefaults(), Query: e.ForceQuery, HealthyP99: e.HealthyP99}
		rules, hints := s.c.own(&e)
		for _, r := range rules {
			terms.Rules = append(terms.Rules, provider.Rule{Rule: r, Fact: provider.Fact{Grade: e.Doubtful[r.ID]}})
		}
		for _, h := range hints {
			terms.Hints = append(terms.Hints, provider.Hint{Source: h})
		}
		if e.Auth.Kind == "" {
			e.Auth.Kind = AuthNone
		}
		n.Members = append(n.Members, sheet.Member{
			Key:   &sheet.Node{Text: e.Name},
			Value: sheet.Block{Fields: entry{&e, &terms}.fields()}.Write(),
		})
	}
	return n
}

// own returns the rules and hints of e without those that its profile and the
// standard add by themselves.
func (c *Config) own(e *Endpoint) ([]classify.Rule, []hint.Source) {
	rules, hints := e.Rules, e.Hints
	if p, ok := c.profile(e); ok {
		rules = without(rules, p.Rules, func(a, b classify.Rule) bool { return a.ID == b.ID })
		hints = without(hints, p.Hints, same)
	}
	return rules, without(hints, hint.Standard(), same)
}

func same(a, b hint.Source) bool {
	return a.Header == b.Header && a.Field == b.Field && a.Format == b.Format && a.Key == b.Key
}

// without cuts the last run of part out of all.
func without[T any](all, part []T, equal func(a, b T) bool) []T {
	for i := len(all) - len(part); i >= 0 && len(part) > 0; i-- {
		if slices.EqualFunc(all[i:i+len(part)], part, equal) {
			return slices.Concat(all[:i], all[i+len(part):])
		}
	}
	return all
}

// secretKeys are where references stand.
var secretKeys = []string{"admin_token", "token", "value", "user", "password", "dsn", "secret"}

// finger puts fingerprints beside the references below n.
func finger(n *sheet.Node, resolve func(Secret) (mask.Secret, error)) {
	for _, item := range n.Items {
		finger(item, resolve)
	}
	for _, m := range n.Members {
		s := m.Value
		if s.Kind != sheet.Scalar || !slices.Contains(secretKeys, m.Key.Text) {
			finger(s, resolve)
			continue
		}
		if _, err := parseSecret(s.Text); err != nil {
			continue // the value of a rule
		}
		if v, err := resolve(Secret(s.Text)); err != nil {
			s.Comment = "cannot be resolved"
		} else {
			s.Comment = "fingerprint " + mask.Fingerprint(string(v))
		}
	}
}
