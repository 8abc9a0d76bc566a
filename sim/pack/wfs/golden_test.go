package wfs_test

import (
	"fmt"
	"testing"

	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/wfs"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	failing := func(version string) func(*packtest.Client) packtest.Answer {
		return func(c *packtest.Client) packtest.Answer {
			if err := c.Case.SetSteps("* /: envelope"); err != nil {
				t.Fatal(err)
			}
			return c.Get("?request=GetFeature&typeName=town:roads&version=" + version)
		}
	}
	for name, ask := range map[string]func(c *packtest.Client) packtest.Answer{
		"a code that says nothing":                    failing("1.1.0"),
		"a transaction that failed in an unknown way": failing("2.0.0"),
		"a type that does not exist, WFS 1.0": func(c *packtest.Client) packtest.Answer {
			return c.Get("?request=GetFeature&version=1.0.0&typeName=town:moons")
		},
		"a stored query that is not there": func(c *packtest.Client) packtest.Answer { return c.Get(get + "roads&resourceId=roads.9999") },
		"a failure that looks like a matter of rights": func(c *packtest.Client) packtest.Answer {
			return c.Send("POST", "", fmt.Sprintf(insert, ""))
		},
		"features": func(c *packtest.Client) packtest.Answer { return c.Get(get + "wells&count=0") },
	} {
		want := packtest.Golden(t, wfs.Pack(), name)
		if short := packtest.Alike(ask(open(t, "")), want, "numberMatched", "numberReturned", "code", "exceptionCode"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
