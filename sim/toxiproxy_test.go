package sim_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

// network is toxiproxy between a client and the simulator. Toxics act on what
// the provider sends (downstream) or on what the client sends (upstream).
type network struct {
	api    *sim.API
	proxy  *toxiproxy.Proxy
	url    string
	client *http.Client
	served chan struct{} // a request was answered, as far as the simulator can tell
	closed bool
	server *httptest.Server
}

// newNetwork starts a simulator and a proxy before it, each on a free port of
// loopback. A toxic is written as toxiproxy's own API takes it.
func newNetwork(t *testing.T, toxics ...string) *network {
	t.Helper()
	n := &network{api: api(t, sim.World{}), served: make(chan struct{}, 16)}
	n.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.api.ServeHTTP(w, r)
		n.served <- struct{}{}
	}))
	server := toxiproxy.ApiServer{Collection: toxiproxy.NewProxyCollection(), Metrics: toxiproxy.NewMetricsContainer(nil)}
	silence(&server.Logger)
	n.proxy = toxiproxy.NewProxy(&server, "provider", "127.0.0.1:0", n.server.Listener.Addr().String())
	if err := n.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	n.url = "http://" + n.proxy.Listen
	// Every request has a connection of its own, so that net/http repeats none
	// by itself.
	n.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(n.close)
	n.poison(t, toxics...)
	return n
}

// silence gives toxiproxy a logger that writes nothing: the zero value of its
// type.
func silence[L any](logger **L) { *logger = new(L) }

func (n *network) poison(t *testing.T, toxics ...string) {
	t.Helper()
	for _, toxic := range toxics {
		if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatalf("%s: %v", toxic, err)
		}
	}
}

// close ends proxy and simulator, after which every request is settled.
func (n *network) close() {
	if !n.closed {
		n.closed = true
		n.proxy.Stop()
		n.server.Close()
	}
}

// charge asks for one charge and returns what the client was told.
func (n *network) charge(ctx context.Context, key string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, "POST", n.url+"/v1/charges", strings.NewReader(`{"amount": 1200, "currency": "eur"}`))
	if err != nil {
		return 0, err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := n.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// list fetches 50 bibs, some kilobytes, and returns them and how long it took.
func (n *network) list(t *testing.T) (body []byte, took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	resp, err := n.client.Get(n.url + "/v1/bibs?limit=50")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return body, time.Since(began), err
}

// want checks what really happened: the status of every request that arrived,
// and how many charges exist.
func (n *network) want(t *testing.T, charges int, statuses ...int) {
	t.Helper()
	n.close()
	var got []int
	for _, e := range n.api.Journal().Entries {
		if e.Open {
			t.Errorf("the answer to request %d is still to come", e.Seq)
		}
		got = append(got, e.Status)
	}
	if diff := cmp.Diff(got, statuses); diff != "" {
		t.Errorf("statuses in the journal: %s", diff)
	}
	if got := n.api.Effects().Charges; got != charges {
		t.Errorf("got %d charges, want %d", got, charges)
	}
}

func TestLatencyIsWaitedOutAndNothingElseChanges(t *testing.T) {
	n := newNetwork(t, `{"type": "latency", "attributes": {"latency": 120}}`)
	body, took, err := n.list(t)
	if err != nil || took < 120*time.Millisecond {
		t.Errorf("got an answer after %v, error %v, want one after 120ms or more", took, err)
	}
	n.want(t, 0, 200)
	if got, want := n.api.Journal().Entries[0].BytesOut, len(body); got != want {
		t.Errorf("the journal says %d bytes, the client got %d", got, want)
	}
}

func TestBandwidthSpreadsAnAnswerOverTime(t *testing.T) {
	n := newNetwork(t, `{"type": "bandwidth", "attributes": {"rate": 40}}`) // kB/s
	body, took, err := n.list(t)
	if least := time.Duration(len(body)) * time.Millisecond / 40; err != nil || took < least || len(body) < 2000 {
		t.Errorf("got %d bytes in %v, error %v, want thousands in %v or more", len(body), took, err, least)
	}
	n.want(t, 0, 200)
	if got, want := n.api.Journal().Entries[0].BytesOut, len(body); got != want {
		t.Errorf("the journal says %d bytes, the client got %d", got, want)
	}
}

func TestSlicesArePutTogetherAgain(t *testing.T) {
	n := newNetwork(t, `{"type": "slicer", "attributes": {"average_size": 100, "delay": 2000}}`) // µs
	body, took, err := n.list(t)
	if least := time.Duration(len(body)/100) * 2 * time.Millisecond; err != nil || took < least {
		t.Errorf("got %d bytes in %v, error %v, want them in %v or more", len(body), took, err, least)
	}
	if want := ask(n.api, "GET", "/v1/bibs?limit=50", "").Body.String(); string(body) != want {
		t.Errorf("the sliced answer differs: %s", cmp.Diff(string(body), want))
	}
	n.want(t, 0, 200, 200)
}

func TestAnAnswerCutOnTheWayIsWholeInTheJournal(t *testing.T) {
	n := newNetwork(t, `{"type": "limit_data", "attributes": {"bytes": 1000}}`)
	body, _, err := n.list(t)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(body) == 0 || len(body) >= 1000 {
		t.Errorf("got %d bytes and error %v, want some of 1000 and unexpected EOF", len(body), err)
	}
	n.want(t, 0, 200)
	if whole := n.api.Journal().Entries[0].BytesOut; whole < 2000 {
		t.Errorf("the journal says %d bytes, want the whole answer", whole)
	}
}

func TestAResetOnTheWayBackLeavesAChargeThatNobodyKnowsOf(t *testing.T) {
	n := newNetwork(t, `{"type": "reset_peer"}`)
	if status, err := n.charge(t.Context(), ""); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got status %d and error %v, want a connection reset by peer", status, err)
	}
	n.want(t, 1, 201)
}

func TestAResetOnTheWayThereDoesNothing(t *testing.T) {
	n := newNetwork(t, `{"type": "reset_peer", "stream": "upstream"}`)
	if status, err := n.charge(t.Context(), ""); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got status %d and error %v, want a connection reset by peer", status, err)
	}
	n.want(t, 0)
}

func TestAnAnswerThatNeverComesWasWorkAllTheSame(t *testing.T) {
	n := newNetwork(t, `{"type": "timeout", "attributes": {"timeout": 0}}`)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-n.served
		leave()
	}()
	if status, err := n.charge(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got status %d and error %v, want no answer", status, err)
	}
	n.want(t, 1, 201)
}

func TestARequestThatNeverArrivesIsInNoJournal(t *testing.T) {
	n := newNetwork(t, `{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`)
	ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer leave()
	if status, err := n.charge(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got status %d and error %v, want no answer", status, err)
	}
	n.want(t, 0)
}

func TestAConnectionClosedInSilenceIsAnEnd(t *testing.T) {
	n := newNetwork(t, `{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 300}}`)
	if status, err := n.charge(t.Context(), ""); !errors.Is(err, io.EOF) {
		t.Errorf("got status %d and error %v, want EOF", status, err)
	}
	n.want(t, 0)
}

func TestAKeyMakesOneChargeOfTwoTries(t *testing.T) {
	n := newNetwork(t, `{"type": "reset_peer", "name": "cut"}`)
	if _, err := n.charge(t.Context(), "order-7"); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("got error %v, want a connection reset by peer", err)
	}
	if err := n.proxy.Toxics.RemoveToxic(t.Context(), "cut"); err != nil {
		t.Fatal(err)
	}
	if status, err := n.charge(t.Context(), "order-7"); status != 201 || err != nil {
		t.Errorf("got status %d and error %v, want 201", status, err)
	}
	n.want(t, 1, 201, 201)
	if got := n.api.Effects().Replayed; got != 1 {
		t.Errorf("got %d answers given again, want 1", got)
	}
}
