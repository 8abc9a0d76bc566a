package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// simulated runs heed sim with args on a free port and returns its URL. It
// ends with the test, and must end well.
func simulated(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, say := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"sim", "--listen", "127.0.0.1:0"}, args...), nil, strings.NewReader(""), io.Discard, say)
		say.Close()
	}()
	line, err := bufio.NewReader(told).ReadString('\n')
	url := regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
	if url == "" {
		t.Fatalf("heed sim said %q, %v", line, err)
	}
	t.Cleanup(func() {
		cancel()
		if got := <-code; got != exitOK {
			t.Errorf("heed sim ended with %d", got)
		}
	})
	return url
}

func TestHeedSimServesWhatItIsTold(t *testing.T) {
	url := simulated(t, "--pack", "stripe,generic", "--steps", "GET /v1/bibs/*: 503, ok")
	var got []int
	for _, path := range []string{"/generic/v1/bibs/1", "/generic/v1/bibs/1", "/v1/charges/ch_1"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got = append(got, resp.StatusCode)
	}
	if got[0] != 503 || got[1] != 200 || got[2] != 401 {
		t.Errorf("got %v", got)
	}
}

func TestHeedSimEndsThoughACallerHangsAsTold(t *testing.T) {
	url := simulated(t, "--steps", "GET /health: hang")
	go func() {
		if resp, err := http.Get(url + "/health"); err == nil {
			resp.Body.Close()
		}
	}()
	for { // until the request has come
		resp, err := http.Get(url + "/_sim/journal")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(text), "hang") {
			return
		}
	}
}
