package folio_test

import (
	"testing"
	"time"

	"github.com/heedproject/heed/sim/pack/folio"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	const holdings = "/holdings-storage/holdings/00000003-0000-4000-8000-000000000001"
	for name, ask := range map[string]func(c *packtest.Client) packtest.Answer{
		"a version that is no longer the last": func(c *packtest.Client) packtest.Answer {
			return c.Send("PUT", first, `{"title":"t","source":"s","instanceTypeId":"i","_version":7}`)
		},
		"the same where the module knows no 409": func(c *packtest.Client) packtest.Answer {
			return c.Send("PUT", holdings, `{"instanceId":"i","permanentLocationId":"l","_version":7}`)
		},
		"a record that is refused": func(c *packtest.Client) packtest.Answer { return c.Send("POST", instance, `{}`) },
		"a record that an earlier attempt made": func(c *packtest.Client) packtest.Answer {
			return c.Send("POST", instance, `{"id":"00000002-0000-4000-8000-000000000001","title":"t","source":"s","instanceTypeId":"i"}`)
		},
		"a record that an earlier attempt made, told by its barcode": func(c *packtest.Client) packtest.Answer {
			return c.Send("POST", "/item-storage/items", `{"barcode":"B1","holdingsRecordId":"h","status":{"name":"x"},"materialTypeId":"m"}`)
		},
		"an expired token": func(c *packtest.Client) packtest.Answer {
			c.Advance(time.Hour)
			return c.Get("/users")
		},
		"a token that is not accepted": func(c *packtest.Client) packtest.Answer { return c.Get("/users", "X-Okapi-Token: none") },
		"a missing token":              func(c *packtest.Client) packtest.Answer { return c.Get("/users", "Cookie: ") },
		"another tenant":               func(c *packtest.Client) packtest.Answer { return c.Get("/users", "X-Okapi-Tenant: other") },
		"a login":                      func(c *packtest.Client) packtest.Answer { return try(c, "diku_admin", "admin") },
		"a login that is refused":      func(c *packtest.Client) packtest.Answer { return try(c, "diku_admin", "wrong") },
		"a refresh token that was used before": func(c *packtest.Client) packtest.Answer {
			p := login(c)
			c.Send("POST", "/authn/refresh", "", p.renewal())
			return c.Send("POST", "/authn/refresh", "", p.renewal())
		},
		"an estimated total": func(c *packtest.Client) packtest.Answer { return c.Get(instance + "?limit=0") },
	} {
		want := packtest.Golden(t, folio.Pack(), name)
		if short := packtest.Alike(ask(enter(t, "", 10)), want); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
