package heed_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/memnet"
	"github.com/heedproject/heed/policy"
)

// world is a real server and a real client stack in virtual time.
type world struct {
	net  memnet.Network
	base *http.Transport
	srv  *http.Server
}

func serve(t *testing.T, h http.HandlerFunc) *world {
	t.Helper()
	w := &world{srv: &http.Server{Handler: h}}
	l, err := w.net.Listen("api.example:80")
	if err != nil {
		t.Fatal(err)
	}
	go w.srv.Serve(l)
	w.base = heed.NewBase(policy.Policy{}.WithDefaults().Timeouts)
	w.base.DialContext = w.net.DialContext
	return w
}

func (w *world) stop() {
	w.base.CloseIdleConnections()
	w.srv.Close()
	time.Sleep(time.Second) // handlers that sleep end
	synctest.Wait()
}

// brisk retries at once and without a bound but the attempts.
func brisk(attempts int) policy.Policy {
	pol := unpaced()
	pol.Retry.Attempts, pol.Breaker.Off = attempts, true
	pol.Backoff.Base = time.Millisecond
	return pol
}

func TestDiscardedAnswersGiveTheirConnectionBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			if n++; n <= 5 {
				rw.WriteHeader(503)
				io.WriteString(rw, strings.Repeat("busy ", 1000))
			}
		})
		defer w.stop()
		w.base.MaxConnsPerHost = 1
		resp, err := (&heed.Transport{Base: w.base, Policy: brisk(0)}).RoundTrip(request(t, "GET", ""))
		if status, _ := finish(t, resp, err); status != 200 || n != 6 || w.net.Dialed() != 1 {
			t.Errorf("got %d after %d requests over %d connections, want 200 after 6 over 1", status, n, w.net.Dialed())
		}
	})
}

func TestATricklingAnswerDelaysTheRetryByTheDrainTimeAtMost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			if n++; n > 1 {
				return
			}
			rw.WriteHeader(503)
			for r.Context().Err() == nil {
				io.WriteString(rw, "x")
				rw.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		})
		defer w.stop()
		begun := time.Now()
		resp, err := (&heed.Transport{Base: w.base, Policy: brisk(0)}).RoundTrip(request(t, "GET", ""))
		if status, _ := finish(t, resp, err); status != 200 || time.Since(begun) > 200*time.Millisecond {
			t.Errorf("got %d after %v, want 200 within 100 ms and the pause", status, time.Since(begun))
		}
	})
}

func TestALargeDiscardedAnswerIsNotDrained(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				rw.Header().Set("Content-Length", "10000000")
				rw.WriteHeader(503)
				io.Copy(rw, io.LimitReader(zeros{}, 10_000_000))
			}
		})
		defer w.stop()
		resp, err := (&heed.Transport{Base: w.base, Policy: brisk(0)}).RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		w.stop()
		if w.net.Dialed() != 2 || w.net.Open() != 0 {
			t.Errorf("dialed %d, %d ends open; want 2 and 0", w.net.Dialed(), w.net.Open())
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAResendOfTheHTTPStackIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var n atomic.Int32
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 2 { // on the connection that was kept alive
				c, _, _ := rw.(http.Hijacker).Hijack()
				c.Close()
			}
		})
		defer w.stop()
		j := &journal{}
		tr := &heed.Transport{Base: w.base, Policy: brisk(1), Observe: j.note}
		for range 2 {
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			finish(t, resp, err)
			synctest.Wait() // until the connection is idle
		}
		got := j.of(heed.AttemptDone)
		if len(got) != 2 || got[1].WireAttempts != 2 || n.Load() != 3 {
			t.Errorf("the server saw %d requests, the events say %+v", n.Load(), got)
		}
	})
}

func TestAWriteWithAKeyThatIsNotHonouredIsNotResentByTheHTTPStack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		posts, fresh := 0, true
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			if fresh {
				fresh = false
				return
			}
			if got := r.Header.Get("Idempotency-Key"); got != "mine" {
				t.Errorf("the key arrived as %q", got)
			}
			posts++
			c, _, _ := rw.(http.Hijacker).Hijack()
			c.Close()
		})
		defer w.stop()
		tr := &heed.Transport{Base: w.base, Policy: brisk(0)}
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		synctest.Wait() // until the connection is idle
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://api.example/", strings.NewReader("x"))
		req.Header.Set("Idempotency-Key", "mine")
		resp, err = tr.RoundTrip(req)
		if e := refused(t, resp, err); e.Reason != heed.NotRepeatable || posts != 1 {
			t.Errorf("got %v; the server saw %d POSTs, want 1", err, posts)
		}
	})
}

func TestTheCallersTraceIsToldToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := serve(t, func(http.ResponseWriter, *http.Request) {})
		defer w.stop()
		n := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { n++ }})
		resp, err := (&heed.Transport{Base: w.base}).RoundTrip(request(t, "GET", "").WithContext(ctx))
		finish(t, resp, err)
		if r, _ := heed.ReportOf(resp); n != 1 || r.WireAttempts != 1 {
			t.Errorf("the caller's trace was told %d connections, the report says %d", n, r.WireAttempts)
		}
	})
}

func TestADialThatOutlivesItsAttemptDoesNoHarm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := serve(t, func(http.ResponseWriter, *http.Request) {})
		defer w.stop()
		var n atomic.Int32
		w.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if n.Add(1) == 1 {
				time.Sleep(3 * time.Second) // deaf to the end of the attempt
				httptrace.ContextClientTrace(ctx)
			}
			return w.net.DialContext(ctx, network, addr)
		}
		pol := brisk(0)
		pol.Timeouts.Attempt = time.Second
		resp, err := (&heed.Transport{Base: w.base, Policy: pol}).RoundTrip(request(t, "POST", "x").WithContext(context.Background()))
		finish(t, resp, err)
		time.Sleep(5 * time.Second)
	})
}

func TestAShortAnswerIsATruncatedOne(t *testing.T) {
	for name, header := range map[string]string{"of a length": "Content-Length: 100\r\n\r\nabc", "in chunks": "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := 0
				w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
					if n++; n == 3 {
						io.WriteString(rw, "whole")
						return
					}
					c, _, _ := rw.(http.Hijacker).Hijack()
					io.WriteString(c, "HTTP/1.1 200 OK\r\n"+header)
					c.Close()
				})
				defer w.stop()
				resp, err := (&heed.Transport{Base: w.base, Policy: brisk(0)}).RoundTrip(request(t, "GET", ""))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				if string(got) != "abc" || !errors.Is(err, heed.ErrTruncated) {
					t.Errorf("streamed: got %q, %v", got, err)
				}
				pol := brisk(0)
				pol.Verify.Mode = policy.VerifyFull
				resp, err = (&heed.Transport{Base: w.base, Policy: pol}).RoundTrip(request(t, "GET", ""))
				if _, body := finish(t, resp, err); body != "whole" {
					t.Errorf("verified: got %q, want whole", body)
				}
			})
		})
	}
}

// h2 is a TLS server that speaks HTTP/2, on loopback.
func h2(t *testing.T, h http.HandlerFunc) (*httptest.Server, *http.Transport) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	base := heed.NewBase(policy.Policy{}.WithDefaults().Timeouts)
	base.TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, NextProtos: []string{"h2"}}
	t.Cleanup(base.CloseIdleConnections)
	return srv, base
}

func TestAnHTTP2StreamThatIsResetIsTruncatedAndCanBeVerified(t *testing.T) {
	n := 0
	srv, base := h2(t, func(rw http.ResponseWriter, r *http.Request) {
		if n++; n == 3 {
			io.WriteString(rw, "whole")
			return
		}
		io.WriteString(rw, "abc")
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	client := &http.Client{Transport: &heed.Transport{Base: base, Policy: brisk(0)}}
	resp, err := client.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, heed.ErrTruncated) {
		t.Errorf("streamed over %s: %v", resp.Proto, err)
	}
	pol := brisk(0)
	pol.Verify.Mode = policy.VerifyFull
	resp, err = (&http.Client{Transport: &heed.Transport{Base: base, Policy: pol}}).Get(srv.URL)
	if _, body := finish(t, resp, err); body != "whole" {
		t.Errorf("verified: got %q, want whole", body)
	}
}

func TestABaseOfNoTimeoutsHasTheDefaults(t *testing.T) {
	got, want := heed.NewBase(policy.Timeouts{}), policy.Policy{}.WithDefaults().Timeouts
	if got.TLSHandshakeTimeout != want.Connect || got.ResponseHeaderTimeout != want.Header {
		t.Errorf("got %v and %v, want %v and %v", got.TLSHandshakeTimeout, got.ResponseHeaderTimeout, want.Connect, want.Header)
	}
}
