package alma_test

import (
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/alma"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/rate"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	walked := func(c *packtest.Client, accept string) packtest.Answer {
		token := packtest.ReadXML[page](c.Get("/analytics/reports?path=/shared/x&limit=1000", "Accept: application/xml")).Token
		return c.Get("/analytics/reports?token="+token, "Accept: "+accept)
	}
	one := []rate.Limit{{Name: "PER_SECOND_THRESHOLD", Kind: rate.SlidingWindow, Capacity: 1, Window: 1e9, Scope: rate.Everyone}}
	day := []rate.Limit{{Name: "DAILY_THRESHOLD", Kind: rate.Daily, Capacity: 1, Scope: rate.Everyone}}
	for _, tt := range []struct {
		name   string
		limits []rate.Limit
		ask    func(c *packtest.Client) packtest.Answer
	}{
		{"too many in one second", one, func(c *packtest.Client) packtest.Answer { c.Get("/users/u1"); return c.Get("/users/u1") }},
		{"the same as XML, where JSON was asked for", one, func(c *packtest.Client) packtest.Answer {
			c.Get("/users/u1")
			return c.Get("/users/u1", "Accept: application/xml")
		}},
		{"the quota of the day", day, func(c *packtest.Client) packtest.Answer { c.Get("/users/u1"); return c.Get("/users/u1") }},
		{"the end of an Analytics walk", nil, func(c *packtest.Client) packtest.Answer { return walked(c, "application/json") }},
		{"the end of an Analytics walk, as XML", nil, func(c *packtest.Client) packtest.Answer { return walked(c, "application/xml") }},
		{"a user that is not there", nil, func(c *packtest.Client) packtest.Answer { return c.Get("/users/nobody") }},
		{"a loan that wants to be confirmed", nil, func(c *packtest.Client) packtest.Answer {
			return c.Send("POST", "/users/u9/loans?item_barcode=A1", "{}")
		}},
		{"a report that is not there", nil, func(c *packtest.Client) packtest.Answer { return c.Get("/analytics/reports?path=/x") }},
		{"a batch with holes", nil, func(c *packtest.Client) packtest.Answer { return c.Get("/bibs?mms_id=9900000010101,992") }},
		{"a list whose total is null", nil, func(c *packtest.Client) packtest.Answer { return c.Get("/users?limit=100&offset=5000") }},
		{"a record that was deleted", nil, func(c *packtest.Client) packtest.Answer { return c.Send("DELETE", "/users/u1", "") }},
	} {
		want := packtest.Golden(t, alma.Pack(), tt.name)
		got := tt.ask(open(t, sim.World{Limits: tt.limits}))
		if short := packtest.Alike(got, want, "errorCode"); short != "" {
			t.Errorf("%s: got %s", tt.name, short)
		}
	}
}
