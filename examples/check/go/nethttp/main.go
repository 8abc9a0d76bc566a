// Command nethttp is http.Client of the Go standard library as heed check meets it.
//
//	heed check --lines -- ./nethttp best
package main

import (
	"net/http"
	"runtime"
	"time"

	"github.com/heedproject/heed/examples/check/lines"
)

func main() {
	c := lines.Client{Name: "Go net/http", Version: runtime.Version(), Do: http.DefaultClient.Do}
	if lines.Best() {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxConnsPerHost = 8
		client := &http.Client{Transport: t, Timeout: 10 * time.Second}
		c.Claims = []string{"concurrency=8"}
		c.Do = client.Do
	}
	lines.Serve(c)
}
