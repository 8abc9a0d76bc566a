package classify_test

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/heedproject/heed/classify"
)

func ExampleClassifier_Classify() {
	// An API that says 200 where it means "slow down".
	c, problems := classify.New([]classify.Rule{{
		ID: "busy",
		When: classify.Match{
			Statuses: []classify.StatusRange{{From: 200, To: 200}},
			Text:     regexp.MustCompile("too many requests"),
		},
		Then: classify.Verdict{Class: classify.Throttled, Executed: classify.No, Retry: classify.Any, Scope: classify.ScopeKey},
	}})
	x := classify.Exchange{
		Method: "POST", Path: "/v1/items", Status: 200, ContentLength: 17,
		Header: http.Header{"Content-Type": {"text/plain"}},
	}
	fmt.Println(len(problems), c.Peek(&x) > 0) // the rule asks for the body
	x.Body, x.BodyEnd, x.Peeked = []byte("too many requests"), true, true
	v := c.Classify(&x, nil)
	fmt.Println(v.Class, v.Executed, v.Rule, v.Repeatable("POST", false))
	// Output:
	// 0 true
	// throttled no busy true
}

func ExampleVerdict_Repeatable() {
	var c *classify.Classifier // the vendor-neutral table
	for _, status := range []int{429, 500, 404} {
		v := c.Classify(&classify.Exchange{Method: "POST", Status: status, Header: http.Header{}}, nil)
		fmt.Println(status, v.Class, v.Executed, v.Repeatable("GET", false), v.Repeatable("POST", false), v.Repeatable("POST", true))
	}
	// Output:
	// 429 throttled no true true true
	// 500 transient maybe true false true
	// 404 permanent no false false false
}
