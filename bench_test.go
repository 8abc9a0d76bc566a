package heed_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// inMemory answers every request at once with the same bytes.
type inMemory struct{ payload []byte }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(m.payload)), ContentLength: int64(len(m.payload)), Request: r,
	}, nil
}

// busy is a Transport with everything set that a busy endpoint sets.
func busy(base http.RoundTripper) *heed.Transport {
	return &heed.Transport{
		Base:    base,
		Policy:  policy.Policy{Limits: policy.Limits{Rate: 1e6, Burst: 1e6, Concurrency: 4096}},
		Observe: func(heed.Event) {},
	}
}

// ride makes one call with body and reads its answer.
func ride(tb testing.TB, client *http.Client, body []byte) {
	var r io.Reader
	method := http.MethodGet
	if body != nil {
		r, method = bytes.NewReader(body), http.MethodPut
	}
	req, err := http.NewRequest(method, "http://provider.invalid/v1/bibs/1", r)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	resp, err := client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func BenchmarkCall(b *testing.B) {
	stub := inMemory{make([]byte, 1024)}
	for name, rt := range map[string]http.RoundTripper{"bare": stub, "heed": busy(stub)} {
		for kind, body := range map[string][]byte{"get": nil, "put": make([]byte, 100)} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				client := &http.Client{Transport: rt}
				b.ReportAllocs()
				for b.Loop() {
					ride(b, client, body)
				}
			})
		}
	}
}

// over is how many allocations a call makes more than one of the bare client.
func over(t *testing.T, body []byte) float64 {
	stub := inMemory{make([]byte, 1024)}
	count := func(rt http.RoundTripper) float64 {
		client := &http.Client{Transport: rt}
		return testing.AllocsPerRun(200, func() { ride(t, client, body) })
	}
	return count(busy(stub)) - count(stub)
}

func TestACallWithoutABodyAllocatesAtMostFourTimes(t *testing.T) {
	if raced {
		t.Skip("the race detector empties pools at random")
	}
	if got := over(t, nil); got > 4 {
		t.Errorf("got %v allocations over the bare client, want at most 4", got)
	}
}

func TestACallWithABodyAllocatesAtMostFiveTimes(t *testing.T) {
	if raced {
		t.Skip("the race detector empties pools at random")
	}
	if got := over(t, make([]byte, 100)); got > 5 {
		t.Errorf("got %v allocations over the bare client, want at most 5", got)
	}
}

func TestALookIntoASmallAnswerCostsNoMoreThanTheAnswer(t *testing.T) {
	if raced {
		t.Skip("the race detector empties pools at random")
	}
	tr := busy(inMemory{make([]byte, 1024)})
	tr.Classifier = dialect(t)
	client := &http.Client{Transport: tr}
	got := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			ride(b, client, nil)
		}
	}).AllocedBytesPerOp()
	if got > 8<<10 { // the peek may take up to 64 KiB
		t.Errorf("a call with 1 KiB of answer leaves %d bytes of garbage", got)
	}
}
