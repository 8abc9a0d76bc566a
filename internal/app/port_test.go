package app

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

func TestAnAnswerToOptionsForTheWholeServerIsAProblemOfOurs(t *testing.T) {
	a := start(t, settings(api(t, "api", func(http.ResponseWriter, *http.Request) {})), Options{})
	for addr, status := range map[string]int{a.DataAddr(): 400, a.AdminAddr(): 404} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status || resp.Header.Get("Heed-Origin") != "gateway" || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d with %v", addr, resp.StatusCode, resp.Header)
		}
	}
}
