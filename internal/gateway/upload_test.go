package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed"
)

// dialed sends text over a connection of its own, which stays open.
func (r *rig) dialed(text string) (net.Conn, *bufio.Reader) {
	r.Helper()
	c, err := net.Dial("tcp", r.Listener.Addr().String())
	from := says(r.T, c, err, text)
	r.Cleanup(func() { c.Close() })
	return c, from
}

// says sends text over a connection that was just dialed, and returns what
// answers come from.
func says(t *testing.T, c net.Conn, err error, text string) *bufio.Reader {
	t.Helper()
	if err == nil {
		_, err = io.WriteString(c, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

func (r *rig) status(from *bufio.Reader) int {
	r.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		r.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestCallerThatStopsReadingGivesItsPlaceBack(t *testing.T) {
	begun := make(chan struct{}, 1)
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "big") {
			begun <- struct{}{}
			b := make([]byte, 1<<20)
			for range 64 {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}
	}, func(_ *rig, tr *heed.Transport) {
		tr.Policy.Limits.Concurrency = 1
		tr.Policy.Timeouts.Idle = 50 * time.Millisecond
	})
	r.dialed("GET /api/big HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-begun
	if a := r.get("/api/small", nil); a.StatusCode != 200 {
		t.Errorf("got %d %s", a.StatusCode, a.text)
	}
}

func TestUploadThatFallsSilentIsEnded(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }, func(_ *rig, tr *heed.Transport) {
		tr.Policy.Timeouts.Idle = 50 * time.Millisecond
	})
	_, from := r.dialed("PUT /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
	if got := r.status(from); got != 400 {
		t.Errorf("got %d, want 400", got)
	}
}

func TestUploadThatIsNotThereWhenItsBudgetEndsIsTheCallersDoing(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }, nil)
	_, from := r.dialed("PUT /api/x HTTP/1.1\r\nHost: localhost\r\nHeed-Budget: 0.1\r\nContent-Length: 100\r\n\r\nabc")
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	p := wantProblem(t, answered{resp, string(b)}, 400, "bad-body")
	wantText(t, p.Detail, "before the request body was complete")
}

func TestRefusalDoesNotAwaitABodyThatNeverComes(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) {}, nil)
	_, from := r.dialed("PUT /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
	if got := r.status(from); got != 404 {
		t.Errorf("got %d, want 404", got)
	}
}

func TestAnswerBeforeTheEndOfTheUploadReachesTheCaller(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Type", eventStream)
		http.NewResponseController(w).Flush()
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d", len(b))
	}, nil)
	c, from := r.dialed("POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabc")
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "def")
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "6" || !resp.Close {
		t.Errorf("got %q, %v, close %v; want all six bytes to arrive and the connection to end", b, err, resp.Close)
	}
}

func TestConnectionOfAnUploadIsUsedAgainAfterItsIdleTime(t *testing.T) {
	const idle = 40 * time.Millisecond
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-time.After(2 * idle): // the deadline of the upload must not end the call
		case <-r.Context().Done():
		}
	}, func(_ *rig, tr *heed.Transport) { tr.Policy.Timeouts.Idle = idle })
	const put = "PUT /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
	c, from := r.dialed(put)
	for range 2 {
		if got := r.status(from); got != 200 {
			t.Fatalf("got %d", got)
		}
		io.WriteString(c, put)
	}
}

func TestAnUpstreamCannotPoseAsTheGatewayInItsTrailers(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Heed-Origin, Connection, X-Ok")
		io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		for _, k := range []string{"Heed-Origin", "Connection", "X-Ok", http.TrailerPrefix + "Heed-Call-Id"} {
			w.Header().Set(k, "1")
		}
	}, nil)
	a := r.get("/api/x", nil)
	if len(a.Trailer) != 1 || a.Trailer.Get("X-Ok") != "1" {
		t.Errorf("got %v, want X-Ok only", a.Trailer)
	}
}

func TestTheConnectionOfAnAnswerBeforeTheEndOfTheUploadIsNotHeld(t *testing.T) {
	over := make(chan struct{})
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, "early")
		_ = http.NewResponseController(w).Flush()
		<-over
		panic(http.ErrAbortHandler) // net/http cannot end full duplex before the end of the body
	}, nil)
	t.Cleanup(func() { close(over) }) // before the server is closed
	c, from := r.dialed("POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabc")
	if got := r.status(from); got != 200 {
		t.Fatalf("got %d, want the answer", got)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * linger))
	if _, err := from.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the connection to end although the caller is silent", err)
	}
}
