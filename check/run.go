package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	usualLimit = 12 * time.Second
	// mostEvents are the requests of a case that a report shows, and mostCause the
	// characters of a sentence.
	mostEvents, mostCause = 300, 600
	// mostStarts are how often a client may not start before no more is tried.
	mostStarts = 5
	// mostMute are the programs that are waited for patiently in vain.
	mostMute = 20
	atOnce   = 48 // cases; most of them wait most of the time
)

// Options say what is checked and how.
type Options struct {
	Client Client
	// Cases are what it is tried at. Default: All.
	Cases []Case
	// Only keeps the cases whose id or group one of these patterns matches, as
	// path.Match has it. Default: all.
	Only []string
	// Quick keeps the few cases that take about two seconds.
	Quick bool
	// Seed makes other ids and other chance.
	Seed uint64
	// Limit is how long the client may take for a case. Default: what the case says.
	Limit time.Duration
	// Listen is where the world is served. Default: a free port of 127.0.0.1.
	Listen string
	// Via is the URL of a gateway that stands before Listen.
	Via string
	// Known are the ids of cases that are known to fail.
	Known []string
	// Claims are added to those of the client, Without taken away.
	Claims, Without []Claim
	// Network is where the world is served. Default: TCP.
	Network Network
	// Progress is told of every case that ends, one call at a time. Optional.
	Progress func(done, all int, r Result)
}

// Run lets the client loose on every case and judges what was seen.
func Run(ctx context.Context, o Options) (*Report, error) {
	cases, err := o.pick()
	if err != nil {
		return nil, err
	}
	if o.Client == nil {
		return nil, errors.New("check: no client is given; set Options.Client")
	}
	if o.Limit < 0 {
		return nil, fmt.Errorf("check: a case cannot take %s; give a time above 0", o.Limit)
	}
	hello, err := o.greet(ctx, cases)
	if err != nil {
		return nil, err
	}
	s, err := newStage(&o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r := &run{Options: o, stage: s, hello: hello, opening: make(chan struct{}, 2*runtime.NumCPU()), pulse: newPulse()}
	defer r.pulse.end()
	began := time.Now()
	report := &Report{Client: hello, Seed: o.Seed, Began: began.UTC().Truncate(time.Second), Results: r.all(ctx, cases)}
	report.Took = time.Since(began)
	if err := r.manners.err(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	report.Notes = r.manners.notes()
	if o.Via != "" && s.seen.Load() == 0 && ctx.Err() == nil {
		return nil, fmt.Errorf("check: no request came through the gateway at %s: %s; let it lead to http://%s", shown(o.Via), asked(ctx, o.Via), s.addr)
	}
	report.grade()
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	return report, nil
}

// greet asks the client who it is, and says what it is judged by.
func (o *Options) greet(ctx context.Context, cases []Case) (Hello, error) {
	hello, err := o.Client.Hello(ctx)
	if err != nil {
		return hello, fmt.Errorf("check: the client does not answer: %w", err)
	}
	hello.Name, hello.Version = plainly(hello.Name, 80), plainly(hello.Version, 80)
	if hello.Claims == nil {
		hello.Claims = Ordinary()
	}
	if err := unknown(slices.Concat(hello.Claims, o.Claims, o.Without), cases); err != nil {
		return hello, err
	}
	hello.Claims = slices.DeleteFunc(slices.Concat(hello.Claims, o.Claims), func(c Claim) bool {
		return slices.ContainsFunc(o.Without, func(w Claim) bool { return w == c || w == Claim(before(string(c), "=")) })
	})
	return hello, unvalued(hello.Claims)
}

// shown is a URL as it may be told: without a password.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the URL that was given"
	}
	return u.Redacted()
}

// asked is what a gateway does with a request of our own, for a message.
func asked(ctx context.Context, gateway string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(gateway, "/")+"/t/none/", nil)
	if err != nil {
		return "this is no URL of a gateway"
	}
	resp, err := plain.Do(r)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused, nobody listens there"
	case err != nil:
		return plainly(withoutURL(err), 200)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // what there is will do
	said := strings.TrimSpace(plainly(string(text), 200))
	if said != "" {
		said = ": " + said
	}
	return fmt.Sprintf("it answered %d%s", resp.StatusCode, said)
}

// Network replaces TCP, for tests in which no time passes.
type Network struct {
	Listen func(addr string) (net.Listener, error)
	// Courier carries webhooks.
	Courier http.RoundTripper
}

// pick returns the cases that are asked for.
func (o *Options) pick() ([]Case, error) {
	cases := o.Cases
	if cases == nil {
		cases = All()
	}
	for _, p := range o.Only {
		known := slices.ContainsFunc(cases, func(c Case) bool { return c.matches(p) })
		if _, err := path.Match(p, ""); err != nil || !known {
			return nil, fmt.Errorf("check: no case is called %q; heed check list names them", p)
		}
	}
	for _, id := range o.Known {
		if !slices.ContainsFunc(cases, func(c Case) bool { return c.ID == id }) {
			return nil, fmt.Errorf("check: the known failure %q is no case; heed check list names them", id)
		}
	}
	var picked []Case
	for _, c := range cases {
		wanted := len(o.Only) == 0 || slices.ContainsFunc(o.Only, c.matches)
		if wanted && (c.Quick || !o.Quick) {
			picked = append(picked, c)
		}
	}
	picked = withTheirs(picked, cases)
	if len(picked) == 0 {
		return nil, errors.New("check: no case is left; leave out --quick, or name others")
	}
	return picked, nil
}

// withTheirs adds the cases whose evidence others judge.
func withTheirs(picked, all []Case) []Case {
	has := func(id string) bool { return slices.ContainsFunc(picked, func(c Case) bool { return c.ID == id }) }
	for _, c := range picked {
		i := slices.IndexFunc(all, func(d Case) bool { return d.ID == c.With })
		if i >= 0 && !has(c.With) {
			picked = append(picked, all[i])
		}
	}
	return picked
}

func (c Case) matches(pattern string) bool {
	whole, _ := path.Match(pattern, c.ID) // the caller has checked the pattern
	return whole || pattern == c.Group()
}

// run is a check that goes on.
type run struct {
	Options
	stage   *stage
	hello   Hello
	opening chan struct{} // sessions that begin: programs that start are hungry

	pulse    *pulse
	renewing sync.Mutex // held by a case whose tokens are told from those of others by time alone

	unstarted atomic.Int64 // cases for which the client did not start
	manners   manners

	mu   sync.Mutex
	done int
}

// all tries the cases, many at a time, and returns the results in their order.
func (r *run) all(ctx context.Context, cases []Case) []Result {
	width := atOnce
	if r.hello.Serial {
		width = 1
	}
	results := make([]Result, len(cases))
	slots := make(chan struct{}, width)
	var wg sync.WaitGroup
	for _, i := range longestFirst(cases) {
		if cases[i].With != "" {
			continue // its evidence comes with that of another one
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.try(ctx, cases, i, results)
		})
	}
	wg.Wait()
	return results
}

// try plays one case and judges all that go with it.
func (r *run) try(ctx context.Context, cases []Case, i int, results []Result) {
	c := &cases[i]
	began := time.Now()
	var e *Evidence
	var err error
	if _, lacks := c.lacks(r.hello.Claims); !lacks && r.hello.cannot(c) == "" {
		if e, err = r.play(ctx, c); err != nil {
			r.unstarted.Add(1)
		} else {
			r.manners.see(e)
		}
	}
	for j := range cases {
		if j == i || cases[j].With == c.ID {
			results[j] = r.judge(ctx, &cases[j], e, err)
			results[j].Took = time.Since(began)
			r.tell(len(cases), results[j])
		}
	}
}

// longestFirst is the order in which cases begin, so that the whole takes as
// long as its slowest case.
func longestFirst(cases []Case) []int {
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(cases[b].limit(), cases[a].limit())
	})
	return order
}

func (c *Case) limit() time.Duration { return cmp.Or(c.Limit, usualLimit) }

func (r *run) tell(all int, one Result) {
	if r.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.Progress(r.done, all, one)
}

// judge says what the evidence means for a case.
func (r *run) judge(ctx context.Context, c *Case, e *Evidence, err error) Result {
	res := Result{ID: c.ID, Group: c.Group(), Title: c.Title, Rule: c.Rule, Weight: max(c.Weight, 1),
		Known: slices.Contains(r.Known, c.ID)}
	claim, lacks := c.lacks(r.hello.Claims)
	switch {
	case r.hello.cannot(c) != "":
		res.Mark, res.Cause = NA, r.hello.cannot(c)
		return res
	case lacks:
		res.Mark, res.Cause, res.Lacks = NA, fmt.Sprintf("the client does not claim %q", claim), claim
		return res
	case ctx.Err() != nil:
		res.Mark, res.Cause = Unknown, "the check was interrupted"
		return res
	case err != nil:
		res.Mark, res.Cause = Fail, plainly(err.Error(), mostCause)
		return res
	}
	v := e.verdict(c)
	res.Mark, res.Cause = v.Mark, plainly(hide(v.Cause, e.secrets), mostCause)
	if c.With == "" {
		res.Timeline = e.timeline()
		if over := len(res.Timeline) - mostEvents; over > 0 {
			res.Timeline, res.Omitted = res.Timeline[:mostEvents], over
		}
	}
	return res
}

// verdict is what the evidence means for its case, or for one that goes with it.
func (e *Evidence) verdict(c *Case) Verdict {
	if e.Output.Fault != "" {
		return unclear("the client does not keep to the protocol, so it was not judged: %s", e.Output.Fault)
	}
	v, broken := e.broken()
	if !broken || c.Patient {
		v = c.Judge(e)
	}
	if v.Mark == Pass && !e.asked() {
		v = unclear("no request came for what it was asked to do, so what it does was not seen")
	}
	if v.Mark != Pass {
		v.Cause += e.wrote()
	}
	return v
}
