package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/drift"
	"github.com/heedproject/heed/sim/pack"
)

type simRecordCmd struct {
	Upstream string   `required:"" placeholder:"URL" help:"The real provider."`
	Out      string   `default:"recording.jsonl" placeholder:"FILE" help:"Where exchanges are written; a new file (${default})."`
	Listen   string   `default:"127.0.0.1:8641" placeholder:"ADDR" help:"Where to serve (${default})."`
	Pack     string   `placeholder:"NAME" help:"The simulated provider; its routes tell names from values in paths."`
	Keep     []string `placeholder:"NAME" help:"Parameters whose values say what is asked for and are kept. Default: request, service and version where they are those of the OGC, such as GetFeature."`
}

// Help is what heed sim record --help says beside the flags.
func (simRecordCmd) Help() string {
	return `Hands every request to the real provider and keeps, of each exchange, what has no value in it: names, statuses, and what values look like. A credential, an id or a text is never written. Compare with heed sim drift.

A segment of a path counts as a name where a route of the pack has it, without --pack where a route of any pack does; all others become {}, or a reference to the answer that had the same value.

Examples:

    heed sim record --upstream https://api.stripe.com --pack stripe
    curl http://127.0.0.1:8641/v1/charges -u "$STRIPE_TEST_KEY:"
    heed sim drift recording.jsonl --pack stripe`
}

// Run serves until the context ends.
func (c *simRecordCmd) Run(sh *shell) (err error) {
	upstream, err := url.Parse(c.Upstream)
	if err != nil {
		return usage(errors.New("sim record: the upstream is no URL; give one such as https://api.example.com"))
	}
	var packs []sim.Pack
	var words []string
	if c.Pack == "" {
		words = drift.Words(pack.All())
	} else if packs, err = pack.Named(c.Pack); err != nil {
		return usage(err)
	}
	out, err := os.OpenFile(c.Out, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil { // what is there is another recording, whose numbers ours would repeat
		return usage(fmt.Errorf("sim record: %w; choose another file with --out", err))
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	r, err := drift.NewRecorder(drift.RecorderOptions{Upstream: upstream, Out: out, Keep: c.Keep, Packs: packs, Words: words})
	if err != nil {
		_ = os.Remove(c.Out) // nothing is in it
		return usage(errors.New("sim record: " + strings.TrimPrefix(err.Error(), "drift: ")))
	}
	err = sh.serve(c.Listen, r, func(addr net.Addr) {
		sh.say("heed: recording %s at http://%s into %s", upstream.Host, addr, c.Out)
	})
	n, failed := r.Done()
	sh.say("heed: recorded %d exchange(s)", n)
	return errors.Join(err, failed)
}

// serve serves h at addr until the context ends; say is told where.
func (sh *shell) serve(addr string, h http.Handler, say func(net.Addr)) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("sim: %w; choose another address with --listen", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	say(l.Addr())
	select {
	case err := <-ended:
		return err
	case <-sh.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sh.ctx), time.Second)
	defer cancel()
	if srv.Shutdown(ctx) != nil { // somebody hangs, perhaps as told
		_ = srv.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
