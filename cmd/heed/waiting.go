package main

import (
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
	"text/tabwriter"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/config"
)

type waitingCmd struct {
	Admin  string `placeholder:"ADDR" help:"The admin address of the gateway, host:port or unix:/path (from heed.yaml, else 127.0.0.1:8643)."`
	Config string `placeholder:"FILE" help:"The configuration to take address and token from (heed.yaml)."`
	JSON   bool   `help:"Print the answer of the admin API as it is."`
}

// Help is what heed waiting --help says beside the flags.
func (waitingCmd) Help() string {
	return `One line per waiting call: which endpoint, which call (a queued one by the id that heed calls show takes), what for (retry_after, quota, backoff, pace, concurrency, breaker, token), since when and until when as far as that is known. Before them the endpoints that an operator holds back, whose queued calls wait too.

Examples:

    heed waiting
    heed waiting --admin 127.0.0.1:9001 --json`
}

// Run asks the gateway and prints what it says.
func (c *waitingCmd) Run(sh *shell) error {
	addr, token, err := c.where(sh)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(sh.ctx, 10*time.Second)
	defer cancel()
	body, err := ask(ctx, addr, "/_heed/waiting", token)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := sh.out.Write(body)
		return err
	}
	var list struct {
		Waiting []heed.Waiter `json:"waiting"`
		Held    []standing    `json:"held"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("what listens on %s is not the admin port of heed: %w", addr, err)
	}
	if len(list.Waiting)+len(list.Held) == 0 {
		_, err := fmt.Fprintln(sh.out, "nothing waits")
		return err
	}
	if _, err := io.WriteString(sh.out, heldLines(list.Held)); err != nil {
		return err
	}
	return table(sh.out, list.Waiting, time.Now())
}

// where finds the admin address, and its token if it has one.
func (c *waitingCmd) where(sh *shell) (addr, token string, err error) {
	addr = "127.0.0.1:8643"
	file := c.Config
	if file == "" {
		file = defaultFile
	}
	cfg, _, err := config.Load(file)
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
	case c.Config == "" && errors.Is(err, fs.ErrNotExist), c.Config == "" && c.Admin != "":
		err = nil
	}
	if c.Admin != "" {
		addr = c.Admin
	}
	if err != nil {
		err = usage(err)
	}
	return addr, token, err
}

// ask gets one page of the admin API.
func ask(ctx context.Context, addr, path, token string) ([]byte, error) {
	network, place := "tcp", addr
	if p, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, place, addr = "unix", p, "localhost"
	}
	var d net.Dialer
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, place)
	}}
	defer t.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return nil, usage(fmt.Errorf("%q is no address; write host:port or unix:/path", addr))
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return nil, &exitError{exitOutage, fmt.Errorf("no gateway answers on %s (heed up starts one): %w", place, err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, &exitError{exitUnauthorized, errors.New("the admin port wants a token; name the configuration that has it with --config")}
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the admin port answered %s", resp.Status)
	}
	return body, nil
}

// table prints the waiting calls for people.
func table(out io.Writer, list []heed.Waiter, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ENDPOINT\tCALL\tATTEMPT\tFOR\tSINCE\tUNTIL\tAHEAD\tTENANT")
	for _, c := range list {
		until := "unknown"
		if !c.Until.IsZero() {
			until = "in " + round(max(c.Until.Sub(now), 0)).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s ago\t%s\t%d\t%s\n", c.Endpoint, cmp.Or(c.QueueID, c.CallID), c.Attempt, c.For,
			round(max(now.Sub(c.Since), 0)), until, c.Ahead, c.Tenant)
	}
	return w.Flush()
}
