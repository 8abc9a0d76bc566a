package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// serving runs heed sim with args on a free port, and returns its URL and what
// ends it. It ends with the test at the latest, and must end well.
func serving(t *testing.T, args ...string) (url string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, say := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"sim"}, args...), nil, strings.NewReader(""), io.Discard, say)
		say.Close()
	}()
	lines := bufio.NewReader(told)
	line, err := lines.ReadString('\n')
	urls := regexp.MustCompile(`http://[0-9.:]+[0-9]`).FindAllString(line, -1)
	if urls == nil {
		t.Fatalf("heed sim said %q, %v", line, err)
	}
	go io.Copy(io.Discard, lines)
	end = sync.OnceFunc(func() {
		cancel()
		if got := <-code; got != exitOK {
			t.Errorf("heed sim ended with %d", got)
		}
	})
	t.Cleanup(end)
	return urls[0], end
}

// simulated serves simulated providers and returns their URL.
func simulated(t *testing.T, args ...string) string {
	t.Helper()
	url, _ := serving(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
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

// form sends a form with Stripe's kind of credential and returns the body.
func form(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer sk_test_canary")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// recorded records a charge that is made and looked at, and returns the file.
func recorded(t *testing.T, upstream string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stripe.jsonl")
	front, end := serving(t, "record", "--upstream", upstream, "--pack", "stripe", "--out", file, "--listen", "127.0.0.1:0")
	var charge struct{ ID string }
	if err := json.Unmarshal([]byte(form(t, "POST", front+"/v1/charges", "amount=350&currency=eur&source=tok_visa")), &charge); err != nil {
		t.Fatal(err)
	}
	form(t, "GET", front+"/v1/charges/"+charge.ID, "")
	form(t, "GET", front+"/v1/charges/ch_unknown", "")
	end()
	return file
}

// drifted runs heed sim drift and returns its exit code and what it printed.
func drifted(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errw strings.Builder
	code := run(t.Context(), append([]string{"sim", "drift"}, args...), nil, strings.NewReader(""), &out, &errw)
	return code, out.String() + errw.String()
}

func TestWhatWasRecordedOfAPackIsNoDriftFromIt(t *testing.T) {
	file := recorded(t, simulated(t, "--pack", "stripe"))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"canary", "tok_visa", "350", "ch_"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in the recording:\n%s", secret, text)
		}
	}
	code, told := drifted(t, file, "--pack", "stripe", "-H", "Authorization: Bearer sk_test_1", "--set", "currency=eur", "--set", "source=tok_visa")
	if want := "3 of 3 exchange(s) compared with stripe: 0 difference(s)\n"; code != exitOK || told != want {
		t.Errorf("got %d %s, want %s", code, told, want)
	}
}

func TestDriftIsToldAndIsAFailure(t *testing.T) {
	file := recorded(t, simulated(t, "--pack", "stripe"))
	code, told := drifted(t, file, "--pack", "generic")
	if code != exitFailure || !strings.Contains(told, "generic has drifted in") || !strings.Contains(told, "body.error: recorded object, the pack has none (exchange 3)") {
		t.Errorf("got %d %s", code, told)
	}
	code, told = drifted(t, file, "--pack", "stripe")
	if code != exitFailure || !strings.Contains(told, "not compared: exchange 1, charges.create: the pack refused") {
		t.Errorf("without a credential: got %d %s", code, told)
	}
}
