// Command heed is the library as heed check meets it: it reads operations from
// its input, one JSON object a line, makes them with a heed.Transport, and
// writes what came of each.
//
//	heed check --lines -- ./heed
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/token"
)

// claims is what this client does; the values are those of agreed.
const claims = `{"name":"heed library","claims":["retry","write","header","deadline","keyed","key","validate",
"envelope","stale","pace","session","parallel","budget","breaker","concurrency=8","cap=2s","timeout=1s","tenant","token","poll"]}`

// agreed is the policy: the defaults, but shorter waits, as a check is short.
var agreed = policy.Policy{
	Endpoint: "check",
	Backoff:  policy.Backoff{Base: 300 * time.Millisecond, Cap: 2 * time.Second},
	Breaker:  policy.Breaker{OnOpen: policy.OnOpenFail},
	Limits:   policy.Limits{Concurrency: 8, TenantShare: 0.75},
	Timeouts: policy.Timeouts{Attempt: time.Second},
	Verify:   policy.Verify{Mode: policy.VerifyFull, MaxAge: time.Minute},
	Key:      policy.Key{Header: "Idempotency-Key", From: policy.KeyRandom},
}

// task is what is asked for, and outcome what came of it.
type task struct {
	ID, Op, Method, URL, Body, Tenant string
	Header                            map[string]string
	DeadlineMS                        int64 `json:"deadline_ms"`
}

type outcome struct {
	ID     string `json:"id"`
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	client := newClient()
	os.Stdout.WriteString(strings.ReplaceAll(claims, "\n", "") + "\n")
	var out sync.Mutex
	var running sync.WaitGroup
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var t task
		if json.Unmarshal(in.Bytes(), &t) != nil {
			continue
		}
		running.Go(func() {
			o := do(client, t)
			out.Lock()
			defer out.Unlock()
			_ = json.NewEncoder(os.Stdout).Encode(o) // who asked may be gone
		})
	}
	running.Wait()
}

// newClient is an http.Client that survives.
func newClient() *http.Client {
	generic, err := provider.Get("generic")
	if err != nil {
		panic(err) // it is built in
	}
	classifier, bad := classify.New(generic.Rules)
	if len(bad) > 0 {
		panic(bad[0].String()) // it is built in
	}
	t := &heed.Transport{Policy: agreed, Classifier: classifier}
	if at := os.Getenv("HEED_CHECK_TOKEN_URL"); at != "" {
		t.Token = &token.Source{Fetcher: token.ClientCredentials{TokenURL: at, ID: "check",
			Secret: mask.Secret(os.Getenv("HEED_CHECK_API_KEY"))}}
	}
	if seed, err := strconv.ParseUint(os.Getenv("HEED_CHECK_SEED"), 10, 64); err == nil {
		t.Seed = seed + 1
	}
	return &http.Client{Transport: t}
}

// do makes one operation.
func do(client *http.Client, t task) outcome {
	ctx := heed.WithCall(context.Background(), heed.Call{Tenant: t.Tenant})
	if t.DeadlineMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(t.DeadlineMS)*time.Millisecond)
		defer cancel()
	}
	for {
		o, state, again := send(ctx, client, t)
		if t.Op != "poll" || !o.OK || state != "pending" && state != "running" {
			return o
		}
		time.Sleep(again)
	}
}

// send makes one call, and tells what a poll wants to know.
func send(ctx context.Context, client *http.Client, t task) (o outcome, state string, again time.Duration) {
	o.ID = t.ID
	r, err := http.NewRequestWithContext(ctx, t.Method, t.URL, strings.NewReader(t.Body))
	if err != nil {
		return o, "", 0
	}
	for name, v := range t.Header {
		r.Header.Set(name, v)
	}
	resp, err := client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*heed.Error](err); ok { // without the URL that net/http puts before it
			err = e
		}
		o.Error = err.Error()
		return o, "", 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if o.Status = resp.StatusCode; err != nil {
		o.Error = err.Error()
		return o, "", 0
	}
	var doc struct{ State string }
	_ = json.Unmarshal(body, &doc) // other answers have no state
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		seconds = 1
	}
	o.OK = resp.StatusCode/100 == 2
	return o, doc.State, time.Duration(seconds) * time.Second
}
