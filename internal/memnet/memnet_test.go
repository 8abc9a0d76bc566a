package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func connect(t *testing.T) (client, server net.Conn) {
	t.Helper()
	var n Network
	l, err := n.Listen("a")
	if err != nil {
		t.Fatal(err)
	}
	client, err = n.DialContext(context.Background(), "tcp", "a")
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close(); l.Close() })
	return client, server
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	client, server := connect(t)
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	client.Close()
	got, err := io.ReadAll(server)
	if err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v; want hello", got, err)
	}
}

func TestWriteBlocksWhenTheBufferIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		wrote := make(chan int, 1)
		go func() {
			n, _ := client.Write(make([]byte, Buffer+1))
			wrote <- n
		}()
		synctest.Wait()
		select {
		case n := <-wrote:
			t.Fatalf("wrote %d bytes into a full buffer", n)
		default:
		}
		if _, err := io.ReadFull(server, make([]byte, Buffer+1)); err != nil {
			t.Fatal(err)
		}
		if got := <-wrote; got != Buffer+1 {
			t.Errorf("wrote %d, want %d", got, Buffer+1)
		}
	})
}

func TestReadDeadlineEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := connect(t)
		client.SetReadDeadline(time.Now().Add(time.Minute))
		began := time.Now()
		_, err := client.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v, want a deadline after a minute", err, time.Since(began))
		}
		client.SetReadDeadline(time.Time{})
	})
}

func TestWritingToAClosedPeerFails(t *testing.T) {
	client, server := connect(t)
	server.Close()
	if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v, want EPIPE", err)
	}
}

func TestNobodyListening(t *testing.T) {
	var n Network
	if _, err := n.DialContext(context.Background(), "tcp", "nowhere"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want ECONNREFUSED", err)
	}
}

func TestHTTPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		l, err := n.Listen("api.test:80")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			io.Copy(w, r.Body)
		})}
		go srv.Serve(l)
		tr := &http.Transport{DialContext: n.DialContext}
		began := time.Now()
		resp, err := (&http.Client{Transport: tr}).Post("http://api.test/", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != "hello" || time.Since(began) != time.Hour {
			t.Errorf("got %q after %v, want hello after an hour", got, time.Since(began))
		}
		tr.CloseIdleConnections()
		srv.Close()
		synctest.Wait()
		if n.Open() != 0 {
			t.Errorf("%d ends are open, want none", n.Open())
		}
	})
}
