package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heedproject/heed/provider"
)

// odd are values as servers have really sent them, and the golden exchange that
// shows how each is read.
var odd = [][2]string{
	{"0.503", "generic/a part of a second"},
	{"292.052427053", "generic/a wait to the nanosecond, rounded up"},
	{"299.997", "sierra/a proxy that limits"},
	{"2.0", "shopify-rest/a full bucket"},
	{"2.128", "msgraph/a wait with a fraction"},
	{"1.", "generic/a second with a point"},
	{"+3", "generic/a number with its sign"},
	{"-3", "generic/a number that is no year"},
	{"1.5", "slack/a wait with a fraction"},
	{"0", "generic/a wait of nothing"},
	{"Mon, 30 Nov 2026 11:00:00 GMT", "generic/a date that is past"},
	{"Mon, 30 Nov 2026 12:00:01 GMT", "generic/a date that is always the next second"},
	{"Mon, 30 Nov 2026 12:00:20 GMT", "wfs/a proxy in front that limits"},
	{"1796040060", "generic/a Unix time where seconds are due"},
	{"1796040060000", "generic/a Unix time in milliseconds where seconds are due"},
	{"99999999999999999999", "generic/a number beyond all measure, which is beyond every ceiling and never negative"},
	{"-3", "github/a secondary limit whose Retry-After is negative"},
	{"", "github/a secondary limit whose Retry-After is blank"},
	{"soon", "generic/garbage for a wait"},
	{"0", "generic/a window that turns now, which is not the same as no word of it"},
	{"1500", "cloudflare/a wait in milliseconds goes first"},
	{"17", "generic/a wait under a name without its hyphen"},
	{"1000: 1000", "generic/a limit that is written twice"},
	{"2026-13-45T25:61:00Z", "generic/a date that is none"},
	{"-1", "openai/Azure sends a number that stands for none"},
	{"3", "openai/a bare number where a duration is due"},
	{"False", "openai/a bare number where a duration is due"},
	{"6m0s", "openai/a minute that is used up"},
	{"17ms", "openai/a reset of some milliseconds"},
	{"7.66s", "openai/a reset of seconds with a point"},
	{"1m26.4s", "openai/a reset where no wait is told"},
	{"2026-01-01T01:02Z", "jira/the points of the hour, to the minute"},
	{"60", "nominatim/Mapbox, too many"},
	{"1s", "nominatim/Crossref's window, with its unit"},
	{"2026-11-30 12:01:00", "generic/a reset as a date with a blank in it"},
	{"1796040001.123", "discord/a reset as a Unix time with a fraction"},
	{"2026-12-01 10:00:00 UTC", "github/a token near its end, which is told in two layouts"},
	{"2026-12-01 12:00:00 +0200", "github/a token near its end, which is told in two layouts"},
	{`"31s"`, "google/a resource that is exhausted for 31 seconds"},
	{`"0.1s"`, "google/a service that is away for a tenth of a second"},
	{`"0s"`, "google/a delay of nothing"},
	{`"default";r=50;t=30`, "cloudflare/a good answer, and what remains"},
	{`"default";t=30`, "cloudflare/a quota that does not say what remains says nothing, and five minutes are the rule"},
	{`"default";r=50;t=30, "burst";r=0;t=5`, "cloudflare/of two quotas the one that is used up counts"},
	{"total=100; remaining=99; resets=41", "zendesk/a list, and what remains of two quotas"},
	{"api-usage=25/5000; per-app-api-usage=17/250(appName=x)", "salesforce/a page, and what it cost the organisation"},
	{"32/40", "shopify-rest/orders, with a bucket that fills"},
	{"Retry after 20", "google/a wait in prose only"},
	{"Please try again in 6.2s", "openai/a wait in prose only"},
	{"retry after 37 seconds", "openai/Azure's prose"},
	{`},],}`, "generic/an error of the server"},
	{"error code: 1015", "discord/the edge answers in text"},
}

// traps are answers that do not mean what they look like, and what shows each.
var traps = map[string][]string{
	"a throttle is not 429": {"salesforce/too many at once, dressed as 403", "google/a throttle dressed as 403", "github/nothing left of the hour, with 403",
		"sierra/a rate limit dressed as 500", "nominatim/Google, too many", "shopify-graphql/a bucket without enough points",
		"github/GraphQL without points", "slack/a throttle dressed as 200", "msgraph/a batch with a throttle inside"},
	"a 429 is not always a throttle": {"openai/money that is used up, dressed as a throttle", "anthropic/the monthly cap, dressed as a throttle",
		"hubspot/nothing left of the day", "salesforce/the quota of the day, compressed", "twilio/a number that was verified too often", "airtable/the month is used up"},
	"a failure that never heals, and failures that are answers": {"sierra/an API that is switched off", "sierra/a hold that was placed by an earlier attempt",
		"sierra/an export of nothing", "sierra/a list without matches", "alma/the end of an Analytics walk"},
	"seconds with a fraction":                {"shopify-rest/a wait of half a second", "msgraph/a wait with a fraction", "discord/a wait in the body alone"},
	"a wait that is clamped hammers":         {"anthropic/ten minutes are not cut short", "notion/a workspace that asks for ten minutes"},
	"a wait of zero, or in the past, is hot": {"generic/a wait of nothing", "generic/a date that is past", "github/a reset that is now"},
	"no Retry-After is not 0":                {"github/a secondary limit whose Retry-After is blank", "shopify-rest/a full bucket that does not say for how long"},
	"one name in several units": {"github/nothing left of the hour, with 429", "jira/the points of the hour, without Retry-After",
		"discord/a reset as a Unix time with a fraction", "zendesk/a throttle with nothing but a reset in seconds", "openai/a minute that is used up",
		"anthropic/a reset of input tokens where no wait is told", "msgraph/SharePoint's quota is used up"},
	"Retry-After as an instant, or beside success": {"generic/a Unix time where seconds are due", "generic/a date that is always the next second",
		"slack/a good answer with a Retry-After, a warning and an error in a message"},
	"what remains says neither when nor whether": {"hubspot/too many in ten seconds", "github/a secondary limit with much left and no Retry-After",
		"discord/a shared resource, with requests left", "openai/Azure sends a number that stands for none"},
	"a reset equal to Date":                     {"github/a reset that is now"},
	"limits are shared with others":             {"alma buckets day", "salesforce buckets salesforce/requests", "nominatim buckets application", "jira buckets app-hour"},
	"limits count by odd keys":                  {"jira buckets issue-writes", "slack buckets slack/posting", "airtable buckets airtable/base", "stripe buckets payment-intent", "msgraph buckets msgraph/mailbox", "discord buckets discord/route"},
	"calls cost unlike":                         {"kalshi buckets read", "shopify-graphql buckets points", "github buckets rest-points", "openai buckets openai/azure-tokens"},
	"penalties":                                 {"airtable/a wait of a second does not shorten the penalty", "cloudflare/the five minutes are used up", "discord ban_counters discord/invalid-requests"},
	"a refresh token that is used twice":        {"folio/a refresh token that was used before", "folio/a refresh whose answer is lost"},
	"a key is no success":                       {"stripe/a failure of an earlier attempt, played again", "stripe/a failure of v2, where the key does it again", "stripe/the first attempt is still at work"},
	"a key that is not there":                   {"slack/a message that may have been posted", "openai/a batch that may have been made", "twilio/a message that may have been sent", "wfs/a transaction that failed in an unknown way"},
	"a signature that ages":                     {"kalshi/a signature that is too old"},
	"an edge speaks another language":           {"discord/the edge answers in text", "slack/an outage in HTML", "jira/the login page of another site", "alma/the same as XML, where JSON was asked for", "anthropic/a request too large, refused by the edge"},
	"media types are not to be trusted":         {"wms/the media type of WMS 1.1.1, with a charset", "wfs/another prefix and another namespace", "wfs/the namespace of OWS 1.0 as default, with a charset"},
	"errors painted as pictures":                {"wms/a picture with an error drawn into it"},
	"success with holes":                        {"shopify-graphql/data with holes", "salesforce/a composite of which a part failed", "alma/a batch with holes", "hubspot/a batch of which a part failed", "github/a search that ran out of time", "sierra/an export with a record that was cut", "openai/a text that a filter ended"},
	"totals lie":                                {"folio/an estimated total", "alma/a list whose total is null"},
	"pages end in many ways":                    {"kalshi/the last page of a list", "alma/the end of an Analytics walk", "slack/an empty page that is not the last", "google/an empty page that is not the last", "msgraph/an empty page that is not the last"},
	"silent limits by default":                  {"sierra paging offset", "jira paging offset"},
	"signals that nobody announced":             {"jira/a reason that is not documented", "jira/the gateway in front, which says nothing of time", "hubspot/too many by a policy that is new", "stripe/too many for a reason that is new"},
	"headers of a limit that is not there yet":  {"jira/a limit that is not enforced yet"},
	"errors in a stream after its 200":          {"openai/a stream, which is passed on", "anthropic/a stream, which is passed on"},
	"headers that are missing when they matter": {"hubspot/too many in ten seconds, when the counting failed", "slack/a throttle without a wait", "github/a secondary limit whose Retry-After is blank"},
	"names in other letters":                    {"zendesk/a throttle with nothing but a reset in seconds", "anthropic/ten minutes are not cut short"},
	"providers that change":                     {"kalshi/limits in the shape of the specification", "kalshi/limits in the shape of production"},
	"days that end elsewhere":                   {"hubspot/nothing left of the day", "google/the quota of the day, on the day the clocks go back", "alma/the quota of the day", "salesforce/the quota of the day, compressed"},
	"a 401 is ambiguous":                        {"sierra/an expired token", "kalshi/a signature that is too old", "salesforce/a session that ended", "hubspot/a token that is not accepted"},
	"a 409 has five meanings": {"stripe/the first attempt is still at work", "folio/a version that is no longer the last", "sierra/several patrons for one barcode",
		"anthropic/a conflict", "notion/two writes that met", "kalshi/an order that an earlier attempt placed"},
}

// byName holds all golden exchanges, each as profile/name.
func byName(t *testing.T) map[string]*provider.Exchange {
	t.Helper()
	named := map[string]*provider.Exchange{}
	for _, profile := range provider.Names() {
		all := exchanges(t, profile)
		for i := range all {
			named[profile+"/"+all[i].Name] = &all[i]
		}
	}
	return named
}

func TestEveryOddValueIsInAnExchange(t *testing.T) {
	named := byName(t)
	for _, row := range odd {
		value, at := row[0], row[1]
		x := named[at]
		if x == nil {
			t.Errorf("there is no exchange %s", at)
			continue
		}
		found := strings.Contains(string(x.Response.Body), value) && value != ""
		for _, lines := range x.Response.Header {
			found = found || slices.Contains(lines, value)
		}
		if !found {
			t.Errorf("%s does not have %q", at, value)
		}
	}
}

func TestEveryTrapIsShown(t *testing.T) {
	named := byName(t)
	for trap, all := range traps {
		for _, at := range all {
			if named[at] == nil && !tells(t, at) {
				t.Errorf("%s: there is no exchange and no fact %s", trap, at)
			}
		}
	}
}

// tells finds a fact by its profile, its block and what it is about.
func tells(t *testing.T, at string) bool {
	t.Helper()
	profile, fact, _ := strings.Cut(at, " ")
	p, err := provider.Get(profile)
	return err == nil && slices.ContainsFunc(p.Facts, func(f provider.Known) bool { return f.Block+" "+f.About == fact })
}
