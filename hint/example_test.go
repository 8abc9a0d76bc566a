package hint_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/heedproject/heed/hint"
)

func ExampleReader_Read() {
	h := http.Header{}
	h.Set("Retry-After", "120")
	h.Set("RateLimit", `"default";r=0;t=30`)
	var r hint.Reader
	got := r.Read(h, time.Now())
	fmt.Println(got.Wait, got.From, got.Remaining, got.Reset)
	// Output: 2m0s Retry-After 0 30s
}

func ExampleNewReader() {
	// A provider's own headers go before the standard ones.
	r, problems := hint.NewReader(append([]hint.Source{
		{Header: "retry-after-ms", Field: hint.Wait, Format: hint.Millis},
		{Header: "x-ratelimit-reset-requests", Field: hint.Reset, Format: hint.GoDuration},
	}, hint.Standard()...))
	h := http.Header{}
	h.Set("Retry-After-Ms", "1500")
	h.Set("X-RateLimit-Reset-Requests", "1m26.4s")
	got := r.Read(h, time.Now())
	fmt.Println(len(problems), got.Wait, got.Reset)
	// Output: 0 1.5s 1m26.4s
}
