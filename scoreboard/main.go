// Command scoreboard lets heed check grade the HTTP clients that people use, each
// with its best and with its default settings, and writes what came out to
// docs/scoreboard.md, .json and .svg.
//
//	./run.sh                 all clients; installs and builds what they need
//	./run.sh curl httpx      these only; the others stay as they are
//	./run.sh -render         no client; the pages are written again from the JSON
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scoreboard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	p := place{}
	flag.StringVar(&p.root, "root", "..", "the repository")
	flag.StringVar(&p.bin, "bin", "out/bin", "where heed and the Go clients are")
	flag.StringVar(&p.python, "python", "/usr/bin/python3", "the Python that has the clients")
	seed := flag.Uint64("seed", 0, "the seed of every check")
	render := flag.Bool("render", false, "run nothing, write the pages again")
	flag.Parse()
	for _, path := range []*string{&p.root, &p.bin} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	picked, err := pick(flag.Args())
	if err != nil {
		return err
	}
	b := &board{} // all clients: the rows of earlier runs have had their time
	if *render || flag.NArg() > 0 {
		if b, err = load(p); err != nil {
			return err
		}
	}
	if *render {
		return b.save(p)
	}
	var failed []error
	for _, c := range picked {
		for _, setting := range settings {
			err := b.grade(ctx, p, c, setting, *seed)
			if err == nil {
				err = b.save(p)
			}
			if ctx.Err() != nil {
				return err
			}
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// pick returns the clients that are named; without a name all.
func pick(names []string) ([]client, error) {
	for _, n := range names {
		if !slices.ContainsFunc(clients, func(c client) bool { return c.Key == n }) {
			var known []string
			for _, c := range clients {
				known = append(known, c.Key)
			}
			return nil, fmt.Errorf("there is no client %q; there are %s", n, strings.Join(known, ", "))
		}
	}
	if len(names) == 0 {
		return clients, nil
	}
	return slices.DeleteFunc(slices.Clone(clients), func(c client) bool { return !slices.Contains(names, c.Key) }), nil
}

// grade runs one client with one setting and puts its row on the board.
func (b *board) grade(ctx context.Context, p place, c client, setting string, seed uint64) error {
	began := time.Now()
	s := c.Run(p, setting)
	s.Name = c.Key + "-" + setting
	r, version, err := checked(ctx, p, s, seed)
	if err != nil {
		return errors.Join(fmt.Errorf("%s with its %s settings was not graded", c.Name, setting), err)
	}
	one := newRow(c, setting, r)
	if version != "" {
		one.Version = version
	}
	b.put(one)
	fmt.Fprintf(os.Stderr, "%-36s %-8s %-3s %3d of %3d passed, %3d failed (%d s)\n", c.Name, setting, one.Grade,
		one.Passed, one.Cases, len(one.Failed), int(time.Since(began).Seconds()))
	return nil
}
