package heed_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// stalls is a body of which the caller sends a part and then no more, until it
// is closed.
type stalls struct {
	io.Reader
	closed chan struct{}
}

func (s *stalls) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	<-s.closed
	return 0, errors.New("closed")
}

func (s *stalls) Close() error {
	close(s.closed)
	return nil
}

func TestABodyThatItsCallerDoesNotSendIsNoFailureOfTheServer(t *testing.T) {
	for name, body := range map[string]func() io.ReadCloser{
		"breaks off": func() io.ReadCloser {
			return io.NopCloser(io.MultiReader(strings.NewReader("part"), brokenReader{}))
		},
		"stalls": func() io.ReadCloser { return &stalls{strings.NewReader("part"), make(chan struct{})} },
	} {
		bubble(t, func(t *testing.T) {
			w := serve(t, func(rw http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
			defer w.stop()
			pol := unpaced()
			pol.Breaker.Consecutive, pol.Retry.Budget = 1, 5*time.Second
			var all journal
			tr := &heed.Transport{Base: w.base, Policy: pol, Observe: all.note}
			req := request(t, "PUT", "")
			req.Body, req.ContentLength = body(), -1
			resp, err := tr.RoundTrip(req)
			refused(t, resp, err)
			if e := all.of(heed.AttemptDone); len(e) != 1 || e[0].Rule != "unread" {
				t.Errorf("%s: got attempts %+v, want one, unread", name, e)
			}
			if got := tr.Gates()[0].Breaker; got != "closed" {
				t.Errorf("%s: the breaker is %s for what the caller did", name, got)
			}
		})
	}
}

// speaks answers every connection with the same text, and hangs up.
func speaks(t *testing.T, text string) *world {
	t.Helper()
	w := &world{srv: &http.Server{}}
	l, err := w.net.Listen("api.example:80")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) {
				c.Read(make([]byte, 4<<10))
				io.WriteString(c, text)
				c.Close()
			}(c)
		}
	}()
	t.Cleanup(func() { l.Close() })
	w.base = heed.NewBase(policy.Policy{}.WithDefaults().Timeouts)
	w.base.DialContext = w.net.DialContext
	return w
}

func TestAnAnswerThatIsNotHTTPIsSaidToBeNone(t *testing.T) {
	for _, text := range []string{
		"SSH-2.0-OpenSSH_9.2\r\n\r\n",
		"HTTP/1.1 99 Odd\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		"HTTP/1.1 200 OK\r\nA\x00: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
	} {
		bubble(t, func(t *testing.T) {
			w := speaks(t, text)
			defer w.stop()
			var all journal
			resp, err := (&heed.Transport{Base: w.base, Policy: brisk(1), Observe: all.note}).RoundTrip(request(t, "GET", ""))
			refused(t, resp, err)
			if e := all.of(heed.AttemptDone); len(e) != 1 || e[0].Rule != "protocol_error" {
				t.Errorf("%q: got %+v, want a protocol error", text, e)
			}
		})
	}
}

func TestARefusalTakesNothingBackOfAnEarlierAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(breaks(errReset), says(429, "", "Retry-After", "120"))
		pol := unpaced()
		pol.Key = policy.Key{Header: "Idempotency-Key", Methods: []string{"POST"}, From: policy.KeyRandom}
		var told []classify.Executed
		tr := &heed.Transport{Base: p, Policy: pol, Observe: func(e heed.Event) {
			if e.Kind == heed.AttemptDone || e.Kind == heed.CallDone {
				told = append(told, e.Executed)
			}
		}}
		resp, err := tr.RoundTrip(request(t, "POST", "a"))
		rep, _ := heed.ReportOf(resp)
		finish(t, resp, err)
		if rep.Executed != classify.Maybe || rep.Attempts != 2 {
			t.Errorf("got executed %v after %d attempts, want maybe after 2: the first may have been carried out", rep.Executed, rep.Attempts)
		}
		if diff := cmp.Diff(told, []classify.Executed{classify.Maybe, classify.No, classify.Maybe}); diff != "" {
			t.Errorf("attempts and call told (-got +want):\n%s", diff)
		}
	})
}

func TestAnErrorTellsWhetherAnyAttemptWasCarriedOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(breaks(errReset), breaks(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}))
		pol := unpaced()
		pol.Key = policy.Key{Header: "Idempotency-Key", Methods: []string{"POST"}, From: policy.KeyRandom}
		pol.Retry.Attempts = 2
		_, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "POST", "a"))
		e, ok := errors.AsType[*heed.Error](err)
		if !ok || e.Executed != classify.Maybe || e.Report.Executed != classify.Maybe {
			t.Errorf("got %+v, want executed maybe: the first attempt broke off after it was sent", err)
		}
	})
}
