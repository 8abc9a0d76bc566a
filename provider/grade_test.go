package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heedproject/heed/provider"
)

// unsure are facts that were first written down from memory, or from a single
// hint: a block and what it is about, or a part of what it says.
var unsure = map[string][]string{
	"airtable":        {"rules airtable/list-expired", "notes Retry-After comes", "idempotency performUpsert"},
	"alma":            {"rules alma/daily", "paging token"},
	"anthropic":       {"notes Remaining tokens are rounded"},
	"cloudflare":      {"rules cloudflare/unsuccessful-200", "rules cloudflare/origin-error", "notes Answers are"},
	"folio":           {"rules folio/already-exists", "auth session", "paging keyset"},
	"github":          {"rules github/locked-out", "rules github/graphql-too-long", "buckets search", "buckets code_search", "buckets rest-points", "auth jwt", "paging 1000 results"},
	"google":          {"rules google/sharing-limit", "rules google/invalid-grant", "auth oauth2_refresh", "paging token", "idempotency request_id"},
	"hubspot":         {"rules hubspot/locked", "rules hubspot/moving", "buckets oauth-ten-seconds", "auth lifetime 30m", "paging 10,000 results"},
	"jira":            {"rules jira/part-failed", "batch /rest/api/3/issue/bulk", "auth oauth2_refresh", "paging token", "paging offset"},
	"kalshi":          {"rules kalshi/order-exists", "paging cursor"},
	"msgraph":         {"rules msgraph/resync", "rules msgraph/claims-challenge", "auth oauth2_client", "idempotency transactionId"},
	"salesforce":      {"rules salesforce/row-locked", "rules salesforce/server-unavailable", "rules salesforce/query-timeout", "auth oauth2_refresh", "paging next_url"},
	"shopify-graphql": {"rules shopify-graphql/access-denied", "rules shopify-graphql/internal-error", "idempotency "},
	"shopify-rest":    {"idempotency ", "auth oauth2_refresh", "paging Beside page_info"},
	"slack":           {"auth oauth2_refresh", "notes The Events API"},
	"stripe":          {"notes Webhooks may come"},
	"twilio":          {"hints.sources Twilio-Concurrent-Requests", "rules twilio/message-taken", "idempotency ", "notes Outgoing webhooks"},
	"zendesk":         {"rules zendesk/conflict", "rules zendesk/job", "idempotency "},
}

// factsLike are the facts of p with this description.
func factsLike(p *provider.Profile, like string) (found []provider.Known) {
	block, about, _ := strings.Cut(like, " ")
	for _, f := range p.Facts {
		if f.From == p.Name && f.Block == block && (f.About == about || strings.Contains(f.About+" "+f.Says, about)) {
			found = append(found, f)
		}
	}
	exact := slices.DeleteFunc(slices.Clone(found), func(f provider.Known) bool { return f.About != about })
	if len(exact) > 0 {
		return exact
	}
	return found
}

func TestWhatWasWrittenFromMemoryIsDocumentedOnlyOnceItWasLookedUp(t *testing.T) {
	for name, all := range unsure {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, like := range all {
			found := factsLike(&p, like)
			if len(found) == 0 {
				t.Errorf("%s: there is no fact like %q", name, like)
			}
			for _, f := range found {
				if f.Grade == provider.Documented && f.Checked == "" {
					t.Errorf("%s: %s %s is graded documented, and nobody has looked since it was written from memory", name, f.Block, f.About)
				}
			}
		}
	}
}
