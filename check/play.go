package check

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed/sim"
)

// errLimit is why a case was ended.
var errLimit = errors.New("did not end in time")

// play is a case in progress.
type play struct {
	run   *run
	of    *Case
	place Place
	ctx   context.Context
	time  *allowance

	sessions []Session // by worker
	keys     []string
	turns    []chan struct{} // one operation of a worker at a time, unless it can do more

	mu       sync.Mutex
	outcomes map[string]Outcome
}

// play asks the client for everything that the case has for it, and gathers
// the evidence.
func (r *run) play(ctx context.Context, c *Case) (*Evidence, error) {
	if r.Via != "" && (c.Renews || c.needs(Tokens)) { // the gateway may have one token for all
		r.renewing.Lock()
		defer r.renewing.Unlock()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	place, err := r.stage.begin(c, Place{Seed: r.Seed, Claims: r.hello.Claims}, end)
	if err != nil {
		return nil, err
	}
	minted, began := r.stage.issuer.made(), time.Now()
	p := &play{run: r, of: c, place: place, ctx: ctx, outcomes: map[string]Outcome{}}
	if err = p.open(); err == nil {
		p.time = newAllowance(cmp.Or(r.Limit, c.limit()), end)
		defer p.time.stop()
		p.waves()
		p.rest(c.Linger)
	}
	out := p.close()
	here, there, done := r.stage.end(place)
	if err != nil {
		return nil, err
	}
	all := p.secrets()
	return &Evidence{Case: c, Claims: r.hello.Claims, Journal: here, Elsewhere: there, Effects: done, Outcomes: p.outcomes,
		Late: r.pulse.late(began), Minted: r.stage.issuer.made() - minted, Output: out, Told: p.leaks(out, all), secrets: all}, nil
}

// open begins a session for each worker.
func (p *play) open() error {
	workers := 1
	for _, o := range p.of.Ask {
		workers = max(workers, o.Worker+1)
	}
	p.sessions, p.keys = make([]Session, workers), make([]string, workers)
	p.turns = make([]chan struct{}, workers)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		p.keys[i] = fmt.Sprintf("hc-%x-%s-%d", p.run.Seed, strings.ReplaceAll(p.place.Case, ".", "-"), i)
		p.turns[i] = make(chan struct{}, 1)
		wg.Go(func() { p.sessions[i], errs[i] = p.openOne(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p *play) openOne(i int) (Session, error) {
	p.run.opening <- struct{}{}
	defer func() { <-p.run.opening }()
	if p.run.unstarted.Load() >= mostStarts {
		return nil, errors.New("the client did not start for other cases, so it was not tried again")
	}
	s := Setting{Case: p.place.Case, BaseURL: p.place.Base, APIKey: p.keys[i], Provider: p.of.Provider, Seed: p.run.Seed + uint64(i), id: rand.Text()}
	if p.of.needs(Tokens) {
		s.TokenURL = p.place.Base + "/oauth/token"
	}
	for _, o := range p.of.Ask {
		s.Deadline = max(s.Deadline, o.Deadline)
	}
	one, err := p.run.Client.Open(p.ctx, s)
	if err != nil {
		return nil, errors.New(hide("the client does not start: "+err.Error(), s.secrets()))
	}
	return one, nil
}

// waves asks for the operations, wave by wave.
func (p *play) waves() {
	_, parallel := value(p.run.hello.Claims, Parallel)
	var all []int
	for _, o := range p.of.Ask {
		all = append(all, o.Wave)
	}
	slices.Sort(all)
	for _, wave := range slices.Compact(all) {
		var wg sync.WaitGroup
		for i := range p.of.Ask {
			o := &p.of.Ask[i]
			if o.Wave != wave {
				continue
			}
			if !p.rest(o.Pause) {
				return
			}
			wg.Go(func() {
				if !parallel {
					p.turns[o.Worker] <- struct{}{}
					defer func() { <-p.turns[o.Worker] }()
				}
				p.do(o)
			})
		}
		wg.Wait()
	}
}

// rest waits and tells whether the case goes on.
func (p *play) rest(d time.Duration) bool {
	if d <= 0 {
		return p.ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

func (p *play) do(o *Operation) {
	began := time.Now()
	var got Outcome
	if p.ctx.Err() != nil {
		got = Outcome{Broken: p.why()}
	} else {
		got = p.ask(o)
	}
	got.Began, got.Ended = began, time.Now()
	if got.Broken != "" && p.ctx.Err() != nil {
		got.Broken, got.flooded = p.why(), errors.Is(context.Cause(p.ctx), errFlood)
	}
	if o.Kind == Receive && got.URL != "" {
		p.listen(o, got.URL)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outcomes[o.ID] = got
}

// ask hands the operation to its session. A program that is run for it alone
// starts when its turn comes.
func (p *play) ask(o *Operation) Outcome {
	s, t := p.sessions[o.Worker], p.task(o)
	if _, ok := s.(*commands); !ok {
		return s.Do(p.ctx, t)
	}
	p.time.hold()
	p.run.opening <- struct{}{}
	started := make(chan struct{})
	var waits sync.WaitGroup
	waits.Go(func() {
		p.run.stage.awaits(p.place, started)
		<-p.run.opening
		p.time.release()
	})
	defer waits.Wait()
	defer close(started)
	return s.Do(p.ctx, t)
}

// why says why the case was ended from outside.
func (p *play) why() string {
	if cause := context.Cause(p.ctx); errors.Is(cause, errFlood) {
		return fmt.Sprintf("%v with more than %d requests", cause, most)
	}
	return fmt.Sprintf("%v (%s)", errLimit, brief(cmp.Or(p.run.Limit, p.of.limit())))
}

func (p *play) task(o *Operation) Task {
	t := Task{ID: o.ID, Kind: cmp.Or(o.Kind, Call), Method: cmp.Or(o.Method, "GET"), URL: p.place.Base + o.Path,
		Header: map[string]string{"Accept": "application/json"}, Body: o.Body, Keyed: o.Keyed, Tenant: o.Tenant, DeadlineMS: o.Deadline.Milliseconds()}
	maps.Copy(t.Header, o.Header)
	if !p.of.needs(Tokens) && !o.Secret {
		t.Header["Authorization"] = "Bearer " + p.keys[o.Worker]
	}
	if o.Body != "" {
		t.Header["Content-Type"] = "application/json"
	}
	if _, own := value(p.run.hello.Claims, Keys); o.Keyed && !own {
		t.Header["Idempotency-Key"] = fmt.Sprintf("key-%x-%s-%s", p.run.Seed, p.place.Case, o.ID)
	}
	if o.Secret {
		t.URL += "?access_token=" + p.keys[o.Worker]
	}
	if o.Kind == Receive {
		t.Secret = hookSecret
	}
	return t
}

func (c *Case) needs(claim Claim) bool { return slices.Contains(c.Needs, claim) }

// hookSecret signs the webhooks of a case.
const hookSecret = "whsec_aGVlZC1jaGVjay1zaWducy13aXRoLXRoaXM="

// listen sends the webhooks of the case to where the client listens.
func (p *play) listen(o *Operation, url string) {
	_, _, _ = p.run.stage.api.Case(p.place.Case).AddWebhook(sim.Webhook{URL: url, Secret: hookSecret, Delay: 50 * time.Millisecond})
}

// close ends the sessions and adds up what they wrote.
func (p *play) close() Output {
	var all Output
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, s := range p.sessions {
		if s == nil {
			continue
		}
		wg.Go(func() {
			o := s.Close()
			mu.Lock()
			defer mu.Unlock()
			all.Text += o.Text
			all.Bytes += o.Bytes
			all.Left += o.Left
			all.Told = append(all.Told, o.Told...)
			all.Fault = cmp.Or(all.Fault, o.Fault)
			all.Stray += o.Stray
			all.FirstStray = cmp.Or(all.FirstStray, o.FirstStray)
		})
	}
	wg.Wait()
	return all
}

// secrets are those of all sessions.
func (p *play) secrets() (all []secret) {
	for _, k := range p.keys {
		all = append(all, Setting{APIKey: k}.secrets()...)
	}
	return all
}

// leaks are those of the secrets that the client has told.
func (p *play) leaks(out Output, all []secret) []string {
	told := seek([]byte(out.Text), all)
	for _, o := range p.outcomes {
		told = append(told, seek([]byte(o.Error), all)...)
	}
	told = append(told, out.Told...)
	slices.Sort(told)
	return slices.Compact(told)
}
