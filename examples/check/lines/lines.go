// Package lines is what the Go clients under heed check share: operations come
// on stdin, one JSON object a line, and each is handed to the client as an
// http.Request whose context ends at the deadline; what came of it goes to stdout.
//
//	heed check --lines -- ./client best
//
// A client runs with the settings that its documentation advises (best, or no
// argument) or with those that it has when nothing is set (default).
package lines

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Client is a client under test.
type Client struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Claims  []string `json:"claims"` // those of every client here are added
	// Do makes one operation.
	Do func(*http.Request) (*http.Response, error) `json:"-"`
}

// tenantKey is where a request keeps the tenant that it is made for.
type tenantKey struct{}

// Tenant is who shares the credential of a request with others; "" is nobody.
func Tenant(r *http.Request) string {
	name, _ := r.Context().Value(tenantKey{}).(string)
	return name
}

// ordinary is what every Go client does: http.Request has a method, a body,
// header fields and a context, and clients are safe for concurrent use.
var ordinary = []string{"write", "header", "deadline", "parallel", "session"}

// task is what is asked for, and outcome what came of it.
type task struct {
	ID, Method, URL, Body, Tenant string
	Header                        map[string]string
	DeadlineMS                    int64 `json:"deadline_ms"`
}

type outcome struct {
	ID     string `json:"id"`
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Best tells whether the best settings are asked for: by the first argument, or
// by none.
func Best() bool { return len(os.Args) < 2 || os.Args[1] == "best" }

// Version is the version of a module that this program is built with.
func Version(module string) string {
	info, _ := debug.ReadBuildInfo() // nil in programs built without modules
	if info == nil {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}

// Repeatable tells whether a request may be sent twice: by its method (RFC 9110
// §9.2.2) or because it has an idempotency key. Libraries that do not look at
// methods leave this to their users.
func Repeatable(r *http.Request) bool {
	return r.Method != http.MethodPost && r.Method != http.MethodPatch || r.Header.Get("Idempotency-Key") != ""
}

// Cause is the error without the URL that http.Client puts before it, for
// clients that are an http.RoundTripper or stand outside of an http.Client: that
// message is not theirs.
func Cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// Serve makes operations until stdin ends.
func Serve(c Client) {
	c.Claims = append(c.Claims, ordinary...)
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(c) // who asked may be gone
	var running sync.WaitGroup
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var t task
		if json.Unmarshal(in.Bytes(), &t) != nil {
			continue
		}
		running.Go(func() {
			o := c.make(t)
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(o)
		})
	}
	running.Wait()
}

// make makes one operation and reads the whole answer.
func (c Client) make(t task) outcome {
	o := outcome{ID: t.ID}
	ctx := context.WithValue(context.Background(), tenantKey{}, t.Tenant)
	if t.DeadlineMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(t.DeadlineMS)*time.Millisecond)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, t.Method, t.URL, strings.NewReader(t.Body))
	if err != nil {
		o.Error = err.Error()
		return o
	}
	for name, v := range t.Header {
		r.Header.Set(name, v)
	}
	resp, err := c.Do(r)
	if err == nil {
		o.Status = resp.StatusCode
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err != nil {
		o.Error = err.Error()
	}
	o.OK = err == nil && o.Status/100 == 2
	return o
}
