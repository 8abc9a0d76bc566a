package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// BenchmarkProxy compares the data path with httputil.ReverseProxy: 1 KiB
// answers over keep-alive connections on loopback, client and upstream included.
func BenchmarkProxy(b *testing.B) {
	answer := make([]byte, 1024)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(answer) }))
	defer api.Close()
	u, err := url.Parse(api.URL)
	if err != nil {
		b.Fatal(err)
	}
	base := func() *http.Transport { return &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true} }
	peer := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(u) }, Transport: base(), BufferPool: &pool{},
	}
	tuned := policy.Policy{Endpoint: "b", Limits: policy.Limits{Rate: 1e6, Burst: 10000, Concurrency: 4096}}
	told := func(heed.Event) {}
	ours := New(Settings{Endpoints: []Endpoint{{
		Name: "b", URL: u, Transport: &heed.Transport{Base: base(), Policy: tuned, Observe: told},
	}}})
	bare := New(Settings{Endpoints: []Endpoint{{Name: "b", URL: u, Transport: &heed.Transport{Base: base(), Policy: policy.Policy{Breaker: policy.Breaker{Off: true}}}}}})
	for _, c := range []struct {
		name string
		h    http.Handler
	}{{"reverseproxy", peer}, {"gateway", ours}, {"gateway-defaults", bare}} {
		b.Run(c.name, func(b *testing.B) {
			srv := httptest.NewServer(c.h)
			defer srv.Close()
			client := &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req, _ := http.NewRequest("GET", srv.URL+"/b/x", nil)
					resp, err := client.RoundTrip(req)
					if err != nil {
						b.Error(err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		})
	}
}

// pool is what a tuned ReverseProxy is given.
type pool struct{ sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.Pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, bufferSize)
}

func (p *pool) Put(b []byte) { p.Pool.Put(&b) }
