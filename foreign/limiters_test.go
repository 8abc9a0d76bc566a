// Package foreign runs heed against what others wrote. Its tests need programs
// that a machine may not have, and real time: foreign/*.sh run them.
package foreign

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed"
)

// nginx takes the place of an API whose front end throttles, as many do: with
// limit_req, a leaky bucket per address. Where burst has no nodelay the calls
// beyond the rate are made to wait, up to so many.
const nginxConf = `
worker_processes 1; pid PID; error_log stderr crit; daemon off;
events { worker_connections 1024; }
http {
	access_log off; limit_req_status 429;
	limit_req_zone $binary_remote_addr zone=fast:1m rate=100r/s;
	limit_req_zone $binary_remote_addr zone=queued:1m rate=100r/s;
	limit_req_zone $binary_remote_addr zone=bare:1m rate=100r/s;
	limit_req_zone $binary_remote_addr zone=slow:1m rate=10r/s;
	server {
		listen ADDRESS;
		location /burst { limit_req zone=fast burst=20 nodelay; empty_gif; }
		location /queued { limit_req zone=queued burst=20; empty_gif; }
		location /bare { limit_req zone=bare; empty_gif; }
		location /slow { limit_req zone=slow burst=5 nodelay; empty_gif; }
	}
}`

// haproxy counts requests over a sliding second, and those that it refuses too:
// who goes on asking stays out.
const haproxyConf = `
defaults
	mode http
	timeout client 10s
	timeout server 10s
	timeout connect 1s
frontend api
	bind ADDRESS
	stick-table type ip size 1k expire 10s store http_req_rate(1s)
	http-request track-sc0 src
	http-request return status 429 if { sc_http_req_rate(0) gt 100 }
	http-request return status 200 content-type text/plain string ok
`

// Sixty-four workers that know nothing of the limit, on a Transport with nothing
// set. What is asserted does not depend on the speed of the machine.
func TestRealLimitersAreLearnedAndEveryCallSucceeds(t *testing.T) {
	if os.Getenv("HEED_FOREIGN") == "" {
		t.Skip("run by foreign/limiters.sh")
	}
	nginx, haproxy := serve(t, "nginx", nginxConf, "-c"), serve(t, "haproxy", haproxyConf, "-db", "-f")
	for _, c := range []struct {
		name, url   string
		rate, burst float64
	}{
		{"nginx limit_req 100/s, burst 20", nginx + "/burst", 100, 20},
		{"nginx limit_req 100/s, queue of 20", nginx + "/queued", 100, 20},
		{"nginx limit_req 100/s, no burst", nginx + "/bare", 100, 1},
		{"nginx limit_req 10/s, burst 5", nginx + "/slow", 10, 5},
		{"haproxy 100 in a sliding second", haproxy + "/", 100, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := int(10 * c.rate)
			r := fleet(t, c.url, 64, calls)
			least := (float64(calls) - c.burst) / c.rate
			t.Logf("%d calls in %.1f s, %.2f × the minimum; %d answers 429, %d of them after the first second",
				calls, r.took.Seconds(), r.took.Seconds()/least, r.refused, r.late)
			if r.failed > 0 {
				t.Errorf("%d calls failed", r.failed)
			}
			if float64(r.late) > 0.05*float64(calls) {
				t.Errorf("%d answers 429 after the first second, want at most 5 %% of %d calls", r.late, calls)
			}
		})
	}
}

type report struct {
	took                  time.Duration
	failed, refused, late int64
}

// fleet makes calls with some workers through one Transport.
func fleet(t *testing.T, url string, workers, calls int) (r report) {
	t.Helper()
	base := &http.Transport{MaxIdleConnsPerHost: workers}
	defer base.CloseIdleConnections()
	began := time.Now()
	var refused, late, failed, next atomic.Int64
	client := &http.Client{Transport: &heed.Transport{Base: base, Observe: func(e heed.Event) {
		if e.Kind == heed.AttemptDone && e.Status == http.StatusTooManyRequests {
			if refused.Add(1); time.Since(began) > time.Second {
				late.Add(1)
			}
		}
	}}}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for next.Add(1) <= int64(calls) {
				if err := get(t.Context(), client, url); err != nil {
					failed.Add(1)
					t.Log(err)
				}
			}
		})
	}
	wg.Wait()
	return report{time.Since(began), failed.Load(), refused.Load(), late.Load()}
}

func get(ctx context.Context, c *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("got %s, want 200", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// serve starts a program with a configuration on a free port, stops it at the
// end of the test, and returns its URL.
func serve(t *testing.T, program, conf string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	address := free(t)
	file := filepath.Join(dir, "conf")
	conf = strings.NewReplacer("ADDRESS", address, "PID", filepath.Join(dir, "pid")).Replace(conf)
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append(flags, file)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return "http://" + address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s did not start", program)
	return ""
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
