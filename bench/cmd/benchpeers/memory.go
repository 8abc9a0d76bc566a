package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"benchpeers/proc"
	"benchpeers/proxy"
	"benchpeers/stats"
)

func init() {
	commands["memory"] = command{"memory of the heed gateway over many calls and over bodies of 1 GiB each way", runMemory}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// gigabytes answers GET with size bytes, and POST with how many it read.
func gigabytes(size int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
			return
		}
		n := int64(1024)
		if r.URL.Path == "/big" {
			n = size
		}
		w.Header().Set("Content-Length", fmt.Sprint(n))
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.CopyN(w, zeros{}, n)
	})
}

func runMemory(args []string) error {
	fs := flag.NewFlagSet("memory", flag.ExitOnError)
	calls := fs.Int("calls", 1_000_000, "calls of 1 KiB")
	size := fs.Int64("size", 1<<30, "bytes of the large bodies")
	if err := fs.Parse(args); err != nil {
		return err
	}
	backend, err := proc.FreePort()
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", backend), Handler: gigabytes(*size)}
	go func() { _ = srv.ListenAndServe() }()
	defer srv.Close()
	return proxy.WithHeed(context.Background(), srv.Addr, func(ctx context.Context, base string, pid int) error {
		return measureMemory(ctx, base, pid, *calls, *size)
	})
}

func measureMemory(ctx context.Context, base string, pid, calls int, size int64) error {
	t := stats.Table{Head: []string{"after", "RSS MiB", "growth MiB", "peak MiB", "seconds"}}
	var before int64
	begin := time.Now()
	row := func(what string) {
		u := proc.Tree(pid)
		t.Add(what, mib(u.RSS), mib(u.RSS-before), mib(u.PeakRSS), fmt.Sprintf("%.0f", time.Since(begin).Seconds()))
		before, begin = u.RSS, time.Now()
	}
	row("start")
	for done := 0; done < calls; {
		load, err := proc.Wrk(ctx, base+"/", 64, 10*time.Second, nil)
		if err != nil {
			return err
		}
		done += int(load.PerSecond * 10)
		row(fmt.Sprintf("%d calls", done))
	}
	resp, err := http.Get(base + "/big")
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || n != size {
		return fmt.Errorf("download ended after %d of %d bytes: %w", n, size, err)
	}
	row(fmt.Sprintf("a download of %d bytes", n))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/big", io.LimitReader(zeros{}, size))
	if err != nil {
		return err
	}
	req.ContentLength = size
	if resp, err = http.DefaultClient.Do(req); err != nil {
		return err
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(answer) != fmt.Sprint(size) {
		return fmt.Errorf("upload: status %d, server read %.80s of %d bytes: %w", resp.StatusCode, answer, size, err)
	}
	row(fmt.Sprintf("an upload of %d bytes", size))
	fmt.Print("\n### memory of the heed gateway, in the order in which it was measured\n\n")
	t.Write(os.Stdout)
	return nil
}

func mib(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
