package toxiproxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	proxying "github.com/Shopify/toxiproxy/v2"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/sim"
)

// place is a simulated provider and the network before it.
type place struct {
	api      *sim.API
	provider *httptest.Server
	network  *proxying.Proxy
}

// open starts both on loopback. A toxic is what toxiproxy's own HTTP API takes.
func open(toxics ...string) (*place, error) {
	api, err := sim.New(sim.World{})
	if err != nil {
		return nil, err
	}
	provider := httptest.NewServer(api)
	server := proxying.ApiServer{Collection: proxying.NewProxyCollection(), Metrics: proxying.NewMetricsContainer(nil)}
	silence(&server.Logger)
	p := &place{api, provider, proxying.NewProxy(&server, "provider", "127.0.0.1:0", provider.Listener.Addr().String())}
	if err := p.network.Start(); err != nil {
		provider.Close()
		return nil, err
	}
	for _, toxic := range toxics {
		if _, err := p.network.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			p.close()
			return nil, fmt.Errorf("toxic %s: %w", toxic, err)
		}
	}
	return p, nil
}

func (p *place) close() {
	p.network.Stop()
	p.provider.Close()
}

// silence gives the proxy a logger that writes nothing: the zero value of its type.
func silence[L any](logger **L) { *logger = new(L) }

// observe tells of every attempt. After the first the network recovers.
func (p *place) observe(e heed.Event) {
	if e.Kind != heed.AttemptDone {
		return
	}
	fmt.Printf("attempt %d: status %d, %s, executed: %s\n", e.Attempt, e.Status, e.Class, e.Executed)
	p.network.Toxics.ResetToxics(context.Background())
}

// A charge is made and its answer lost on the way back. heed tries again with
// the same key, and there is one charge.
func Example_reset() {
	p, err := open(`{"type": "reset_peer"}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.close()

	client := &http.Client{Transport: &heed.Transport{
		Policy:  policy.Policy{Key: policy.Key{Header: "Idempotency-Key"}},
		Observe: p.observe,
	}}
	charge := strings.NewReader(`{"amount": 1200, "currency": "eur"}`)
	req, _ := http.NewRequest("POST", "http://"+p.network.Listen+"/v1/charges", charge)
	req.Header.Set("Idempotency-Key", "order-7")
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()

	done := p.api.Effects()
	fmt.Printf("charges: %d, answers given again: %d\n", done.Charges, done.Replayed)
	// Output:
	// attempt 1: status 0, transient, executed: maybe
	// attempt 2: status 201, ok, executed: yes
	// charges: 1, answers given again: 1
}

// An answer is cut on the way. With full verification heed hands none of it
// out and fetches it again.
func Example_cut() {
	p, err := open(`{"type": "limit_data", "attributes": {"bytes": 1000}}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.close()

	client := &http.Client{Transport: &heed.Transport{
		Policy:  policy.Policy{Verify: policy.Verify{Mode: policy.VerifyFull}},
		Observe: p.observe,
	}}
	resp, err := client.Get("http://" + p.network.Listen + "/v1/bibs?limit=50")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println("whole:", int64(len(body)) == resp.ContentLength, err)
	// Output:
	// attempt 1: status 200, truncated, executed: yes
	// attempt 2: status 200, ok, executed: yes
	// whole: true <nil>
}

// A network that is slow and thin costs time, not attempts: heed waits for an
// answer that is on its way.
func Example_slow() {
	p, err := open(
		`{"type": "latency", "attributes": {"latency": 100, "jitter": 20}}`,
		`{"type": "bandwidth", "attributes": {"rate": 50}}`,
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.close()

	client := &http.Client{Transport: &heed.Transport{Observe: p.observe}}
	resp, err := client.Get("http://" + p.network.Listen + "/v1/bibs?limit=50")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	// Output: attempt 1: status 200, ok, executed: yes
}
