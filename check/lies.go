package check

import "time"

// lies are answers that look good and are none.
func lies() []Case {
	sense := "RFC 8259 §2"
	var all []Case
	for _, l := range []struct {
		name, title, step string
		claim             Claim
		rule, source      string
		quick             bool
	}{
		{"truncated", "half of what Content-Length promises", "truncate", "", "an answer that is shorter than it says is none", "RFC 9112 §8", true},
		{"cut", "one byte of what Content-Length promises", "cut(at=1)", "", "an answer that is shorter than it says is none", "RFC 9112 §8", false},
		{"cut-json", "JSON that ends in its middle, of the right length", "cut-clean", Validates, "JSON that does not parse is no answer", sense, false},
		{"malformed", "JSON that does not parse", "malformed", Validates, "JSON that does not parse is no answer", sense, false},
		{"empty", "an empty body where JSON was promised", "empty", Validates, "an empty body is no JSON", sense, false},
		{"html", "a login page", "html", Validates, "a page is no JSON", sense, false},
		{"envelope", "an error in the body", "envelope", Envelopes, "an error in the body of a 200 is an error", "S6 of docs/features.md", false},
		{"fewer", "half of the entries, though the count is told", "cut-valid", Counts, "fewer entries than the answer counts are not all", "G14 of docs/features.md", false},
		{"stale", "an answer from a cache that is an hour old", "stale(age=1h)", Fresh, "an answer that is too old is none", "RFC 9111 §5.1", false},
	} {
		var needs []Claim
		if l.claim != "" {
			needs = []Claim{l.claim}
		}
		all = append(all, Case{ID: "lies/" + l.name, Title: "200: " + l.title + ", then the truth", Rule: Rule{l.rule, l.source},
			Weight: 2, Needs: needs, Quick: l.quick, World: world("GET /v1/items/*: " + l.step + ", ok"),
			Ask: []Operation{{ID: "read", Path: "/v1/items/read"}}, Judge: notFooled})
	}
	return append(all,
		Case{ID: "lies/chunked", Title: "200: a chunked body without its last chunk, then the truth", Weight: 2,
			Rule:  Rule{"a chunked body without its last chunk is not all", "RFC 9112 §7.1, §8"},
			World: world(""), Front: breaksOff, Ask: []Operation{{ID: "read", Path: "/v1/items/read"}}, Judge: notFooled},
		Case{ID: "lies/graphql", Title: "200: an error in the body of a GraphQL answer, then the truth", Weight: 2, Provider: "shopify-graphql",
			Rule:  Rule{"errors without data are no answer", "GraphQL specification of October 2021, §7.1"},
			Needs: []Claim{Writes, GraphQL}, World: scripted(failedGraph), Ask: []Operation{query("read")}, Judge: notFooled},
		Case{ID: "lies/always-truncated", Title: "200: cut short, every time",
			Rule: Rule{"what cannot be had whole is reported as a failure", "RFC 9112 §8"}, Patient: true,
			World: world("GET /v1/items/*: truncate x6000"), Limit: 5 * time.Second,
			Ask: []Operation{{ID: "read", Path: "/v1/items/read", Deadline: 2 * time.Second}}, Judge: neverBelieves},
		Case{ID: "lies/always-malformed", Title: "200: JSON that does not parse, every time", Needs: []Claim{Validates},
			Rule: Rule{"what cannot be had whole is reported as a failure", "S6 of docs/features.md"}, Patient: true,
			World: world("GET /v1/items/*: malformed x6000"), Limit: 5 * time.Second,
			Ask: []Operation{{ID: "read", Path: "/v1/items/read", Deadline: 2 * time.Second}}, Judge: neverBelieves},
	)
}

// notFooled wants the client to ask again, or to report a failure.
func notFooled(e *Evidence) Verdict {
	tries, o := e.First()
	switch {
	case len(tries) == 0:
		return failed("no request came, and %s", said(o))
	case o.OK && len(tries) == 1:
		return failed("it took the answer for good: %s", said(o))
	case !o.OK && len(tries) > 1:
		return failed("the second of %s was answered with the truth, yet %s", count(len(tries), "request"), said(o))
	}
	return passed("%s; %s", count(len(tries), "request"), said(o))
}

// neverBelieves wants the client not to report success; one that still tries
// does not.
func neverBelieves(e *Evidence) Verdict {
	tries, o := e.First()
	if o.OK {
		return failed("it reported success after %s, though none was answered with the truth", count(len(tries), "request"))
	}
	return passed("%s, and no success was reported", count(len(tries), "request"))
}
