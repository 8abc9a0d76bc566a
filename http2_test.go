package heed_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/memnet"
	"github.com/heedproject/heed/policy"
)

// Frame types and flags of HTTP/2 (RFC 9113 §6).
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

	endStream, ack, endHeaders = 1, 1, 4
)

func frame(w io.Writer, kind, flags byte, stream uint32, payload ...byte) {
	head := []byte{0, 0, byte(len(payload)), kind, flags}
	w.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// decline answers a request that it has not processed.
type decline func(w io.Writer, stream uint32)

func refuseStream(w io.Writer, stream uint32) { frame(w, frameReset, 0, stream, 0, 0, 0, 7) }

func goAway(w io.Writer, _ uint32) { frame(w, frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }

// speak plays an HTTP/2 server that declines the first request once it has
// come whole, and answers 200 to the others.
func speak(c net.Conn, n *atomic.Int32, no decline) {
	defer c.Close()
	io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	frame(c, frameSettings, 0, 0)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == frameSettings && flags&ack == 0:
			frame(c, frameSettings, ack, 0)
		case (kind == frameHeaders || kind == frameData) && flags&endStream != 0:
			if n.Add(1) == 1 {
				no(c, stream)
				continue
			}
			frame(c, frameHeaders, endStream|endHeaders, stream, 0x88) // :status 200, RFC 7541 appendix A
		}
	}
}

// declining is a base transport to a server that declines the first request; n
// counts what it saw.
func declining(t *testing.T, n *atomic.Int32, no decline) *http.Transport {
	t.Helper()
	var network memnet.Network
	l, err := network.Listen("api.example:80")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go speak(c, n, no)
		}
	}()
	base := heed.NewBase(policy.Policy{}.WithDefaults().Timeouts)
	base.DialContext, base.Protocols = network.DialContext, new(http.Protocols)
	base.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(func() {
		l.Close()
		time.Sleep(time.Second)
		base.CloseIdleConnections()
		synctest.Wait()
	})
	return base
}

func TestAWriteThatHTTP2DidNotProcessIsRepeated(t *testing.T) {
	for name, no := range map[string]decline{"REFUSED_STREAM": refuseStream, "GOAWAY": goAway} {
		for _, own := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var n atomic.Int32
					req := request(t, "POST", "order")
					if own {
						req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("order")), nil }
					}
					resp, err := (&heed.Transport{Base: declining(t, &n, no), Policy: brisk(0)}).RoundTrip(req)
					finish(t, resp, err)
					if r, _ := heed.ReportOf(resp); n.Load() != 2 || r.WireAttempts != 2 {
						t.Errorf("GetBody %v: the server saw %d requests, the report says %d", own, n.Load(), r.WireAttempts)
					}
				})
			})
		}
	}
}

func TestAnHTTP2AttemptThatTakesTooLongIsATimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var n atomic.Int32
		j := &journal{}
		pol := brisk(0)
		pol.Timeouts.Attempt = time.Second
		tr := &heed.Transport{Base: declining(t, &n, func(io.Writer, uint32) {}), Policy: pol, Observe: j.note}
		resp, err := tr.RoundTrip(request(t, "GET", "")) // its context can be canceled
		finish(t, resp, err)
		if got := j.of(heed.AttemptDone)[0]; got.Rule != classify.HeaderTimeout.String() {
			t.Errorf("the first attempt was told as %q", got.Rule)
		}
	})
}
