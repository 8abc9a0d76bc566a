package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed/check"
)

// client makes a Client of habits, over the memory.
func client(h habits, m *memory) check.Program {
	return check.Program{
		Says: check.Hello{Name: "model", Claims: h.Claims},
		Begin: func(s check.Setting, log func(string)) func(context.Context, check.Task) check.Outcome {
			k := &worker{habits: h, setting: s, log: log, memory: m, rng: rand.New(rand.NewPCG(s.Seed, 1)),
				http: &http.Client{Transport: m.transport(), CheckRedirect: h.Follow}}
			k.gate.init(h)
			return k.do
		},
	}
}

// worker is a session of the model.
type worker struct {
	habits
	setting check.Setting
	log     func(string)
	memory  *memory
	http    *http.Client
	gate    gate
	token   bearer
	born    sync.Once
	life    context.Context // of the session

	mu  sync.Mutex
	rng *rand.Rand
}

// got is what one attempt brought.
type got struct {
	resp *http.Response // nil: none
	err  error
}

func (g got) status() int {
	if g.resp == nil || g.err != nil {
		return 0
	}
	return g.resp.StatusCode
}

func (k *worker) do(ctx context.Context, t check.Task) check.Outcome {
	k.born.Do(func() { k.life = ctx })
	if k.Heeds && t.DeadlineMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.Deadline())
		defer cancel()
	}
	k.gate.asked.Add(1)
	defer k.gate.asked.Add(-1)
	switch t.Kind {
	case check.Poll:
		return k.poll(ctx, t)
	case check.Receive:
		return k.receive(ctx, t)
	}
	return k.call(ctx, t)
}

func (k *worker) draw(f func(*rand.Rand) time.Duration) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return f(k.rng)
}

// call makes attempts until one is good, or no other may follow.
func (k *worker) call(ctx context.Context, t check.Task) (out check.Outcome) {
	out.ID = t.ID
	defer func() { out.OK = out.OK || k.Boasts && out.Status != 0 }()
	refusals := 0
	for n := 0; ; n++ {
		if err := k.gate.enter(ctx, t.Tenant); err != nil {
			out.Error = err.Error()
			return out
		}
		g := k.attempt(ctx, t, n)
		wait := k.learn(g)
		k.gate.leave(g)
		out.Status = g.status()
		switch {
		case g.err == nil && k.Good(t, out.Status):
			if out.OK = true; k.Keeps {
				_ = rest(ctx, wait)
			}
			return out
		case out.Status == 401 && k.token.in(k.setting, t) && refusals < k.Refusals:
			refusals++
			k.token.drop(g.resp.Request.Header.Get("Authorization"))
			continue
		case !k.Repeats(t, g), k.Attempts > 0 && n+1 >= k.Attempts, ctx.Err() != nil, !k.gate.retry():
			out.Error = k.Complains(t, g)
			return out
		}
		wait = max(wait, k.draw(func(r *rand.Rand) time.Duration { return k.Pause(n, r) }))
		end, ok := ctx.Deadline()
		if k.Dozes {
			_ = rest(k.life, wait)
		} else if ok && wait > time.Until(end) || rest(ctx, wait) != nil {
			out.Error = k.Complains(t, g)
			return out
		}
	}
}

// complaint is an error without the URL, which may have a credential in it.
func complaint(g got) string {
	if g.err == nil {
		return "answered " + strconv.Itoa(g.status())
	}
	if u, ok := errors.AsType[*url.Error](g.err); ok {
		return u.Err.Error()
	}
	return g.err.Error()
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// learn returns how long the answer asks this operation to wait, and tells the
// gate what holds all of them.
func (k *worker) learn(g got) time.Duration {
	if g.resp == nil {
		return 0
	}
	hint, told := time.Duration(0), false
	if s := g.resp.StatusCode; s == 429 || s == 503 {
		hint, told = k.Hint(g.resp)
	}
	if !told {
		hint, told = k.Dialect(g.resp)
	}
	if !told {
		hint, told = k.Quota(g.resp)
	}
	if !told || hint == 0 {
		return 0
	}
	hint += k.draw(func(r *rand.Rand) time.Duration { return k.Extra(hint, r) })
	if k.Shares {
		k.gate.close(hint, g.resp.StatusCode == 429)
	}
	return hint
}

// attempt sends the task once and reads all of the answer.
func (k *worker) attempt(ctx context.Context, t check.Task, n int) (g got) {
	if k.Attempt > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.Attempt)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, t.Method, t.URL, strings.NewReader(k.Body(t, n)))
	if err != nil {
		return got{err: err}
	}
	for name, v := range t.Header {
		if k.Carries(name, n) {
			r.Header.Set(name, v)
		}
	}
	if t.Keyed {
		r.Header.Set("Idempotency-Key", k.Key(t, n))
	}
	if k.token.in(k.setting, t) {
		token, err := k.token.get(ctx, k)
		if err != nil {
			return got{err: err}
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	g.resp, g.err = k.http.Do(r)
	if g.err == nil {
		defer g.resp.Body.Close()
		var body []byte
		if body, g.err = io.ReadAll(g.resp.Body); errors.Is(g.err, io.ErrUnexpectedEOF) && !k.Whole {
			g.err = nil
		} else if g.err == nil && g.resp.StatusCode/100 == 2 {
			g.err = k.Believes(g.resp, body)
		}
		g.resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	k.Log(k.log, r, g.status(), g.err)
	return g
}

// believes looks into a 2xx, for every lie but one.
func believes(but string) func(*http.Response, []byte) error {
	return func(resp *http.Response, body []byte) error {
		var doc struct {
			Code    string
			Count   int
			Entries []string
			Data    any
			Errors  []struct{ Extensions struct{ Code string } }
		}
		age, _ := strconv.Atoi(resp.Header.Get("Age"))
		err := json.Unmarshal(body, &doc)
		if len(doc.Errors) > 0 && doc.Errors[0].Extensions.Code == "THROTTLED" && but != "throttle" {
			return errThrottled
		}
		for lie, is := range map[string]bool{
			"empty": len(body) == 0, "html": bytes.HasPrefix(body, []byte("<")), "malformed": err != nil && bytes.HasPrefix(body, []byte("{")),
			"envelope": doc.Code == "-1", "count": doc.Count > len(doc.Entries), "stale": age > 60,
			"graphql": doc.Data == nil && len(doc.Errors) > 0,
		} {
			if is && lie != but {
				return errLie
			}
		}
		return nil
	}
}

// poll looks until the job has ended.
func (k *worker) poll(ctx context.Context, t check.Task) check.Outcome {
	for {
		var job struct{ State string }
		g := k.attempt(ctx, t, 0)
		if g.status() != 200 {
			return check.Outcome{ID: t.ID, Error: complaint(g)}
		}
		if json.NewDecoder(g.resp.Body).Decode(&job) != nil {
			return check.Outcome{ID: t.ID, Error: errLie.Error()}
		}
		if job.State != "pending" && job.State != "running" {
			return check.Outcome{ID: t.ID, OK: true, Status: 200}
		}
		if err := rest(ctx, k.Look(g.resp)); err != nil {
			return check.Outcome{ID: t.ID, Error: err.Error()}
		}
	}
}
