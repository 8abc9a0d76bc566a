package heed

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"unsafe"

	"github.com/heedproject/heed/policy"
)

type stub struct{ payload []byte }

func (s stub) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(s.payload)), ContentLength: int64(len(s.payload)), Request: r}, nil
}

func BenchmarkRT(b *testing.B) {
	b.Log(unsafe.Sizeof(op{}))
	for _, c := range []string{"bare", "heed"} {
		b.Run(c, func(b *testing.B) {
			var rt http.RoundTripper = stub{make([]byte, 1024)}
			if c == "heed" {
				rt = &Transport{Base: rt, Policy: policy.Policy{Limits: policy.Limits{Rate: 1e6, Burst: 1e4, Concurrency: 4096}}, Observe: func(Event) {}}
			}
			cl := &http.Client{Transport: rt}
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest("GET", "http://provider.invalid/v1/bibs/1", nil)
				req.Header.Set("X-Api-Key", "k")
				resp, err := cl.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
