package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/config"
)

// deskFlags say where the admin port of a running gateway is.
type deskFlags struct {
	Admin  string `placeholder:"ADDR" help:"The admin address of the gateway, host:port or unix:/path (from heed.yaml, else 127.0.0.1:8643)."`
	Config string `placeholder:"FILE" help:"The configuration to take address and token from (heed.yaml)."`
}

// desk is the admin port, as one command talks to it.
type desk struct {
	place string // where it listens
	addr  string // what stands for it in a URL
	token string
	http  http.Client
}

// open finds the admin port. Nothing is sent yet.
func (f *deskFlags) open(sh *shell) (*desk, error) {
	addr, token, err := f.where(sh)
	if err != nil {
		return nil, err
	}
	network, place := "tcp", addr
	if p, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, place, addr = "unix", p, "localhost"
	}
	var dialer net.Dialer
	d := &desk{place: place, addr: addr, token: token}
	d.http.Transport = &http.Transport{
		MaxIdleConnsPerHost: atOnce,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, place)
		},
	}
	return d, nil
}

// where finds the admin address, and its token if it has one.
func (f *deskFlags) where(sh *shell) (addr, token string, err error) {
	addr = "127.0.0.1:8643"
	cfg, _, err := config.Load(cmp.Or(f.Config, defaultFile))
	switch {
	case err == nil:
		if cfg.Listen.Admin != "" {
			addr = cfg.Listen.Admin
		}
		if cfg.Listen.AdminToken != "" {
			secret, unknown := cfg.Listen.AdminToken.Resolve(sh.value, os.ReadFile)
			if token = string(secret); unknown != nil {
				err = fmt.Errorf("%s: %w", cfg.Where("listen.admin_token"), unknown)
			}
		}
	case f.Config == "" && errors.Is(err, fs.ErrNotExist), f.Config == "" && f.Admin != "":
		err = nil
	}
	if f.Admin != "" {
		addr = f.Admin
	}
	if err != nil {
		err = usage(err)
	}
	return addr, token, err
}

// close gives the connections back.
func (d *desk) close() { d.http.CloseIdleConnections() }

// refused is a problem that the admin port answered with.
type refused struct {
	status        int
	Title, Detail string
	// Imported is what was taken in before an import failed.
	Imported importResult
}

func (e *refused) Error() string {
	if e.Title == "" {
		return fmt.Sprintf("the admin port answered %d", e.status)
	}
	text := strings.ToLower(e.Title[:1]) + e.Title[1:]
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// code is the exit code for it.
func (e *refused) code() int {
	switch e.status {
	case http.StatusBadRequest:
		return exitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitUnauthorized
	case http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusMisdirectedRequest:
		return exitPermanent
	case http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		return exitOutage
	}
	return exitFailure
}

// gone tells whether a call could not be changed because it is no longer what
// it was when it was listed.
func gone(err error) bool {
	e, ok := errors.AsType[*refused](err)
	return ok && (e.status == http.StatusNotFound || e.status == http.StatusConflict || e.status == http.StatusGone)
}

// send makes one request. Answers other than 200 come back as errors.
func (d *desk) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+d.addr+path, body)
	if err != nil {
		return nil, usage(fmt.Errorf("%q is no address; write host:port or unix:/path", d.addr))
	}
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	resp, err := d.http.Do(r)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return nil, &exitError{exitCanceled, errors.New("interrupted")}
	case err != nil:
		return nil, &exitError{exitOutage, fmt.Errorf("no gateway answers on %s (heed up starts one): %w", d.place, errors.Unwrap(err))}
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer resp.Body.Close()
	e := &refused{status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // the status says enough
	_ = json.Unmarshal(text, e)
	if e.status == http.StatusUnauthorized {
		e.Title, e.Detail = "the admin port wants a token", "name the configuration that has it with --config"
	}
	if id := calledAt(path); e.status == http.StatusNotFound && id != "" && !heedMade(id) {
		e.Detail = fmt.Sprintf("no id is or begins with %.60q (heed calls list shows them)", id)
	}
	return nil, &exitError{e.code(), e}
}

// patience is how long one small request may take: the store may be busy.
const patience = time.Minute

// order sends what, if any, and reads the answer into into, if any.
func (d *desk) order(ctx context.Context, method, path string, what, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var body io.Reader
	if what != nil {
		text, err := json.Marshal(what)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	resp, err := d.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("what listens on %s is not the admin port of heed: %w", d.place, err)
	}
	return nil
}

// atOnce is how many small requests are under way together: the store commits
// what comes together in one step.
const atOnce = 16

// progress tells how far long work has got. Short work is not talked about.
type progress struct {
	sh    *shell
	verb  string // what has been done to the calls
	of    int    // 0: unknown
	begun time.Time
	told  time.Time
}

// tellEvery is how often it says so.
const tellEvery = 2 * time.Second

func (sh *shell) progress(verb string, of int) *progress {
	now := time.Now()
	return &progress{sh: sh, verb: verb, of: of, begun: now, told: now}
}

// at tells that n calls are done.
func (p *progress) at(n int) {
	now := time.Now()
	if now.Sub(p.told) < tellEvery {
		return
	}
	p.told = now
	rate := float64(n) / now.Sub(p.begun).Seconds()
	switch {
	case p.of == 0 || rate == 0:
		p.sh.say("heed: %s %d so far (%.0f/s)", p.verb, n, rate)
	default:
		left := time.Duration(float64(p.of-n) / rate * float64(time.Second)).Round(time.Second)
		p.sh.say("heed: %s %d of %d (%.0f/s, about %s left)", p.verb, n, p.of, rate, left)
	}
}
