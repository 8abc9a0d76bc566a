// Package windows is a provider that limits by counting requests in a window
// of time, fixed or sliding, where package throttled has a token bucket. It
// shows whether a client that learns has only learnt what a bucket does.
package windows

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"benchpeers/throttled"
)

// The variants: how the window moves, and whether a 429 has Retry-After (in
// whole seconds, until there is room again) or nothing.
const (
	Fixed       throttled.Variant = "fixed"
	FixedHint   throttled.Variant = "fixed-hint"
	Sliding     throttled.Variant = "sliding"
	SlidingHint throttled.Variant = "sliding-hint"
)

// Variants lists them in report order.
var Variants = []throttled.Variant{Fixed, FixedHint, Sliding, SlidingHint}

// Config describes the server.
type Config struct {
	Variant   throttled.Variant
	Limit     int           // requests per window
	Window    time.Duration // fixed windows begin with the first request
	Service   time.Duration // how long an admitted request takes
	Body      int           // bytes in a 200 response
	OutageAt  time.Duration // after the first request
	OutageFor time.Duration // 0: none
}

// Minimum is the time that n requests take at an even pace at the limit. A
// client that knows where a window begins and fills it at once gains up to
// one window on it.
func (c Config) Minimum(n int) time.Duration {
	rate := float64(c.Limit) / c.Window.Seconds()
	left, sec := float64(n), 0.0
	if before := rate * c.OutageAt.Seconds(); c.OutageFor > 0 && left > before {
		left -= before
		sec = (c.OutageAt + c.OutageFor).Seconds()
	}
	return time.Duration((sec+left/rate)*float64(time.Second)) + c.Service
}

// counter is the state of one API key.
type counter struct {
	began time.Time   // of the fixed window
	used  int         // in the fixed window
	sent  []time.Time // admitted in the sliding window, oldest first
}

// Server is the handler. Create it with New.
type Server struct {
	cfg     Config
	payload []byte

	mu      sync.Mutex
	t0      time.Time
	keys    map[string]*counter
	events  []throttled.Event
	settled map[string]bool // logical IDs answered 200
	dup     int
}

// New returns a server.
func New(cfg Config) *Server {
	return &Server{
		cfg:     cfg,
		payload: bytes.Repeat([]byte("x"), cfg.Body),
		keys:    map[string]*counter{},
		settled: map[string]bool{},
	}
}

// Minimum is Config.Minimum.
func (s *Server) Minimum(n int) time.Duration { return s.cfg.Minimum(n) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, wait := s.decide(r.Header.Get("X-Api-Key"), r.Header.Get("X-Logical-Id"), time.Now())
	h := w.Header()
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	body := []byte(nil)
	if status == http.StatusOK {
		time.Sleep(s.cfg.Service)
		h.Set("Content-Type", "text/plain")
		body = s.payload
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (s *Server) decide(key, logical string, now time.Time) (status int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.t0.IsZero() {
		s.t0 = now
	}
	at := now.Sub(s.t0)
	status = http.StatusOK
	if c := s.cfg; c.OutageFor > 0 && at >= c.OutageAt && at < c.OutageAt+c.OutageFor {
		status = http.StatusServiceUnavailable
	} else if wait = s.count(key, now); wait > 0 {
		status = http.StatusTooManyRequests
		if !strings.HasSuffix(string(c.Variant), "-hint") {
			wait = 0
		}
	}
	s.events = append(s.events, throttled.Event{At: at, Status: status})
	if status == http.StatusOK && logical != "" {
		if s.settled[logical] {
			s.dup++
		}
		s.settled[logical] = true
	}
	return status, wait
}

// count takes a place in the window, or tells how long until there is one.
func (s *Server) count(key string, now time.Time) time.Duration {
	k := s.keys[key]
	if k == nil {
		k = &counter{began: s.t0}
		s.keys[key] = k
	}
	if strings.HasPrefix(string(s.cfg.Variant), "fixed") {
		if n := now.Sub(k.began) / s.cfg.Window; n > 0 {
			k.began, k.used = k.began.Add(n*s.cfg.Window), 0
		}
		if k.used >= s.cfg.Limit {
			return k.began.Add(s.cfg.Window).Sub(now)
		}
		k.used++
		return 0
	}
	gone := 0
	for gone < len(k.sent) && now.Sub(k.sent[gone]) >= s.cfg.Window {
		gone++
	}
	k.sent = slices.Delete(k.sent, 0, gone)
	if len(k.sent) >= s.cfg.Limit {
		return k.sent[0].Add(s.cfg.Window).Sub(now)
	}
	k.sent = append(k.sent, now)
	return 0
}

// Report sums up the log so far, as package throttled does.
func (s *Server) Report() throttled.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := throttled.Report{Requests: len(s.events), Duplicates: s.dup}
	const slot = 10 * time.Millisecond
	slots, busiest, last := map[time.Duration]int{}, 0, time.Duration(0)
	for _, e := range s.events {
		switch e.Status {
		case http.StatusOK:
			r.OK++
		case http.StatusTooManyRequests:
			r.Throttled++
		default:
			r.Outage++
		}
		last = max(last, e.At)
		slots[e.At/slot]++
		busiest = max(busiest, slots[e.At/slot])
	}
	if n := len(s.events); n > 0 {
		r.Collision = float64(busiest) * float64(last/slot+1) / float64(n)
	}
	return r
}
