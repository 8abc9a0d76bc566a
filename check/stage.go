package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/sim"
)

// most is how many requests a client may send in one case before it is taken
// for one that floods.
const most = 5000

// stage serves the worlds of a run.
type stage struct {
	net       Network
	api       *sim.API
	other     *sim.API
	servers   []*http.Server
	base      string // without the case
	addr      string // where the worlds are served
	seen      atomic.Int64
	mute      atomic.Int64 // programs of which no request came soon
	elsewhere string
	running   sync.WaitGroup

	mu     sync.Mutex
	guards map[string]*guard

	issuer issuer
}

// guard stands before the world of a case. It counts requests and ends the case
// when there are too many.
type guard struct {
	next http.Handler
	seen atomic.Int64
	end  context.CancelCauseFunc
}

var errFlood = errors.New("flooded the server")

// newStage listens where o says; clients reach it by o.Via, if that is given.
func newStage(o *Options) (*stage, error) {
	s := &stage{net: o.Network, guards: map[string]*guard{}}
	if s.net.Listen == nil {
		s.net.Listen = func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	}
	var err error
	if s.api, err = sim.New(sim.World{}); err != nil {
		return nil, err
	}
	if s.other, err = sim.New(sim.World{Packs: []sim.Pack{elsewhere()}}); err != nil {
		return nil, err
	}
	if s.base, err = s.serve(cmp.Or(o.Listen, "127.0.0.1:0"), s.counted(s.guarded(func(g *guard) http.Handler { return g.next }))); err != nil {
		return nil, err
	}
	s.addr = strings.TrimPrefix(s.base, "http://")
	there, err := s.serve("127.0.0.1:0", s.guarded(func(*guard) http.Handler { return s.other }))
	if err != nil {
		s.close()
		return nil, err
	}
	// By another name: clients compare names, and many compare nothing else.
	s.elsewhere = strings.Replace(there, "127.0.0.1", "localhost", 1)
	if o.Via != "" {
		u, err := url.Parse(o.Via)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			s.close()
			return nil, errors.New("check: this is no URL of a gateway; give one such as http://127.0.0.1:8642/demo")
		}
		s.base = strings.TrimSuffix(o.Via, "/")
	}
	return s, nil
}

func (s *stage) serve(addr string, h http.Handler) (string, error) {
	l, err := s.net.Listen(addr)
	if err != nil {
		return "", fmt.Errorf("check: the world of the client cannot be served: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	s.servers = append(s.servers, srv)
	s.running.Go(func() { _ = srv.Serve(l) }) // it ends by close
	return "http://" + l.Addr().String(), nil
}

// counted counts all that comes, and makes the tokens of gateways.
func (s *stage) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.seen.Add(1)
		if r.URL.Path == "/oauth/token" {
			s.issuer.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guarded serves the cases that are running, each by what next says, and keeps
// clients from the simulator and from floods.
func (s *stage) guarded(next func(*guard) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, rest := cut(strings.TrimPrefix(r.URL.Path, "/t/"), "/")
		s.mu.Lock()
		g := s.guards[id]
		s.mu.Unlock()
		if g == nil {
			http.Error(w, "heed check: no such case is running", http.StatusNotFound)
			return
		}
		if rest == "" || before(rest, "/") == "_sim" {
			http.Error(w, "heed check: the simulator is not for the client", http.StatusForbidden)
			return
		}
		if g.seen.Add(1) > most {
			g.end(errFlood)
			http.Error(w, "heed check: too many requests in this case", http.StatusTooManyRequests)
			return
		}
		next(g).ServeHTTP(w, r)
	})
}

// begin makes the world of a case.
func (s *stage) begin(c *Case, p Place, end context.CancelCauseFunc) (Place, error) {
	id := strings.ReplaceAll(c.ID, "/", ".")
	p.Case, p.Base, p.Elsewhere = id, s.base+"/t/"+id, s.elsewhere+"/t/"+id
	p.issuer = &s.issuer
	w := c.World(p)
	w.Seed, w.Courier = p.Seed, s.net.Courier
	if _, err := s.api.Begin(id, w); err != nil {
		return p, fmt.Errorf("check: case %s: %w", c.ID, err)
	}
	next := http.Handler(s.api)
	if c.Front != nil {
		next = c.Front(next)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guards[id] = &guard{next: next, end: end}
	return p, nil
}

// awaits returns when another request of the case has come, when it is given up,
// or when it takes so long that nobody is kept waiting for it.
func (s *stage) awaits(p Place, given <-chan struct{}) {
	s.mu.Lock()
	g := s.guards[p.Case]
	s.mu.Unlock()
	if g == nil {
		return
	}
	before := g.seen.Load()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for until := time.Now().Add(s.patience()); time.Now().Before(until); {
		if g.seen.Load() > before {
			return
		}
		select {
		case <-look.C:
		case <-given:
			return
		}
	}
	s.mute.Add(1)
}

// patience is how long the first request of a program is waited for: where the
// machine is busy it starts slowly, and to give it up early starts more of them
// at a time, each of which is slower still. But one that was waited for in vain
// often hangs, and a run has to end.
func (s *stage) patience() time.Duration {
	switch mute, sends := s.mute.Load(), s.seen.Load() > 0; {
	case mute < mostStarts, sends && mute < mostMute:
		return 15 * time.Second
	case sends:
		return 3 * time.Second
	}
	return 100 * time.Millisecond // it seems to send nothing
}

// end closes a case and returns what was seen, when nothing is open any more.
func (s *stage) end(p Place) (here, there sim.Journal, done sim.Effects) {
	one := s.api.Case(p.Case)
	for range 40 {
		here = one.Journal()
		if !open(here) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.mu.Lock()
	delete(s.guards, p.Case)
	s.mu.Unlock()
	here, there, done = one.Journal(), s.other.Case(p.Case).Journal(), one.Effects()
	s.api.Remove(p.Case)
	return here, there, done
}

func open(j sim.Journal) bool {
	for _, e := range j.Entries {
		if e.Open {
			return true
		}
	}
	return false
}

func (s *stage) close() {
	for _, srv := range s.servers {
		_ = srv.Close()
	}
	s.running.Wait()
	s.api.Close()
	s.other.Close()
}
