package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	grading "github.com/heedproject/heed/check"
	"github.com/heedproject/heed/check/report"
)

type checkCmd struct {
	Run  checkRunCmd  `cmd:"" default:"withargs" help:"Grade a client. This is what heed check does."`
	List checkListCmd `cmd:"" help:"List the cases and their rules."`
}

// Help is what heed check --help says beside its commands.
func (checkCmd) Help() string {
	return `heed check -- CLIENT {url} is short for heed check run -- CLIENT {url}; heed check run --help tells the flags.`
}

type checkRunCmd struct {
	Command argv   `arg:"" name:"client" optional:"" help:"The client, after --: a command with {url}, or with --lines a program that speaks JSON lines."`
	Lines   bool   `help:"The client reads operations from its input as JSON lines and answers on its output."`
	Adapter string `placeholder:"URL" help:"The client runs already and answers /health, /reset and /run there."`
	Via     string `placeholder:"URL" help:"The client is asked to use this gateway, which must lead to the address of --listen."`
	Listen  string `default:"127.0.0.1:0" placeholder:"ADDR" help:"Where the simulated provider is served (a free port)."`

	Only     []string `placeholder:"CASE" help:"Groups or cases, such as retry-after or 'final/4*'. Repeatable."`
	Quick    bool     `help:"Only the few cases that take about two seconds."`
	Seed     uint64   `help:"Another number makes other ids and other chance."`
	Deadline caseTime `placeholder:"TIME" help:"How long the client may take for a case, such as 20s; a number is seconds (what the case says)."`
	Claim    []string `placeholder:"WORD" help:"What the client does, beside what it says itself. See heed check list."`
	Without  []string `placeholder:"WORD" help:"What it does not do."`

	MinGrade      string `placeholder:"GRADE" help:"Exit with 1 below this grade: A+, A, B, C, D, F."`
	KnownFailures string `placeholder:"FILE" help:"Cases that fail, one a line. Exit with 1 when one of them passes, or another one fails."`
	Compare       string `placeholder:"FILE" help:"A report of --json: tell what has changed since in the cases that both have. No exit code depends on it."`

	JSON  string `placeholder:"FILE" help:"Write the report as JSON; - is stdout."`
	JUnit string `name:"junit" placeholder:"FILE" help:"Write it as JUnit XML; - is stdout."`
	HTML  string `name:"html" placeholder:"FILE" help:"Write it as one HTML file, with a timeline per case."`
	Badge string `placeholder:"FILE" help:"Write the grade as an SVG badge."`
	Color string `enum:"auto,always,never" default:"auto" help:"Colours: auto, always, never."`
	All   bool   `help:"Show the cases that passed, too."`
}

// argv is the command line of a client.
type argv []string

// Decode takes all that is left. What begins with a - could be meant for heed
// check or for the client, so it needs the -- before both.
func (a *argv) Decode(ctx *kong.DecodeContext) error {
	for !ctx.Scan.Peek().IsEOL() {
		t := ctx.Scan.Pop()
		if *a = append(*a, t.String()); t.Type == kong.UntypedToken && strings.HasPrefix(t.String(), "-") {
			return fmt.Errorf("%s may be meant for heed check or for the client; put -- before the client: heed check -- %s …",
				t.String(), strings.Join(*a, " "))
		}
	}
	return nil
}

// caseTime is a time such as 20s; a number alone is seconds.
type caseTime time.Duration

// UnmarshalText reads one.
func (t *caseTime) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if _, number := strconv.ParseFloat(string(text), 64); err != nil && number == nil {
		d, err = time.ParseDuration(string(text) + "s")
	}
	if err != nil {
		return fmt.Errorf("%q is no time; give one such as 20s", text)
	}
	*t = caseTime(d)
	return nil
}

// Help is what heed check run --help says beside the flags.
func (checkRunCmd) Help() string {
	return `The client is let loose on a simulated provider that throttles, fails and lies, and is judged by what came over the wire. What it does not claim to do is not held against it.

In a command, {url} {method} {body} {body_file} {headers_file} {api_key} {key} {deadline} and {base_url} are replaced; an argument {header} is repeated for each header field, with the option before it. Exit status 0 means that the client believes to have succeeded. It is run once for each case, in a folder of its own, which is erased; files that the command names are found where you are.

Examples:

    heed check -- curl -sS --fail --retry 5 {url}
    heed check -- python3 sync.py {url}
    heed check -- curl -sS --fail --retry 5 -X {method} -H {header} --data {body} {url}
    heed check --lines -- python3 client.py
    heed check --listen 127.0.0.1:8650 --via http://127.0.0.1:8642/demo
    heed check --min-grade B --json report.json --html report.html -- ./client {url}

A client of JSON lines writes {"name":"…","claims":["retry"]} first, then reads operations and answers each: {"id":"read","ok":true,"status":200}. examples/check/README.md has the whole of it, and of --adapter.

For --via, a gateway of heed needs an endpoint whose url is http:// and the address of --listen, with networks: [127.0.0.1/32] and auth: {kind: passthrough}; for writes that are repeated also idempotency: {header: Idempotency-Key, from: random}. Say with --claim what it does: retry, pace, session, budget and breaker with nothing else set; keyed and key with idempotency; validate, envelope and stale with verify: {mode: full, max_age: 1m}; concurrency=8 and tenant with limits: {concurrency: 8, tenant_share: 0.75}; cap=2s with backoff: {cap: 2s}; timeout=3s with timeouts: {attempt: 3s}; token with a token endpoint of its own. The breaker needs breaker: {on_open: fail} for calls to end while it is open.

Exit codes: 0 graded, 1 below --min-grade or other than --known-failures, 2 command line is wrong.`
}

// Run grades the client and writes what was asked for.
func (c *checkRunCmd) Run(sh *shell) error {
	o, err := c.options(sh)
	if err != nil {
		return usage(err)
	}
	old, err := c.before()
	if err != nil {
		return usage(err)
	}
	forms, err := c.forms()
	if err != nil {
		return usage(err)
	}
	defer unhurried(sh.ctx)()
	defer drop(forms) // those that were not kept
	defer grading.Adopt()()
	shown := newMeter(sh)
	o.Progress = shown.tell
	r, err := grading.Run(sh.ctx, o)
	shown.clear()
	if err != nil && r == nil {
		if sh.ctx.Err() != nil {
			return &exitError{exitCanceled, errors.New("interrupted")}
		}
		return usage(err)
	}
	werr := c.write(sh, r, old, forms)
	if err != nil {
		return &exitError{exitCanceled, errors.Join(werr, errors.New("interrupted; what was not tried is told as unknown"))}
	}
	return errors.Join(werr, c.judge(r))
}

// unhurried keeps a second signal from ending the process at once: an interrupted
// check first ends the programs of its client, for which it has five seconds.
func unhurried(ctx context.Context) (over func()) {
	passed := make(chan os.Signal, 1) // nobody reads it
	signal.Notify(passed, os.Interrupt, syscall.SIGTERM)
	late := context.AfterFunc(ctx, func() { time.AfterFunc(5*time.Second, func() { signal.Stop(passed) }) })
	return func() {
		if late() { // nothing was interrupted
			signal.Stop(passed)
		}
	}
}

// options turns the flags into what check takes.
func (c *checkRunCmd) options(sh *shell) (grading.Options, error) {
	o := grading.Options{Only: c.Only, Quick: c.Quick, Seed: c.Seed, Limit: time.Duration(c.Deadline), Listen: c.Listen, Via: c.Via,
		Claims: claims(c.Claim), Without: claims(c.Without)}
	if _, known := new(grading.Report).Reaches(c.MinGrade); c.MinGrade != "" && !known {
		return o, fmt.Errorf("--min-grade %s is no grade; give A+, A, B, C, D or F", c.MinGrade)
	}
	var err error
	if o.Client, err = c.client(sh); err != nil {
		return o, err
	}
	if c.KnownFailures != "" {
		text, err := os.ReadFile(c.KnownFailures)
		if err != nil {
			return o, err
		}
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			if id := strings.TrimSpace(line); id != "" {
				o.Known = append(o.Known, id)
			}
		}
	}
	return o, nil
}

func claims(words []string) []grading.Claim {
	all := make([]grading.Claim, len(words))
	for i, w := range words {
		all[i] = grading.Claim(w)
	}
	return all
}

// client is how the client is reached.
func (c *checkRunCmd) client(sh *shell) (grading.Client, error) {
	switch {
	case c.Via != "" && strings.HasSuffix(c.Listen, ":0"):
		return nil, errors.New("--via needs --listen with the address that the gateway leads to, such as --listen 127.0.0.1:8650")
	case c.Adapter != "" && len(c.Command) > 0:
		return nil, errors.New("give either --adapter or a command")
	case c.Adapter != "":
		return grading.Adapter{URL: c.Adapter}, nil
	case len(c.Command) > 0 && c.Lines:
		return grading.Lines{Args: c.Command, Env: sh.env}, nil
	case len(c.Command) > 0:
		args, err := rooted(c.Command)
		return grading.Command{Args: args, Env: sh.env}, err
	case c.Via != "":
		return grading.Bare(), nil
	}
	return nil, errors.New("no client is named; write, for example: heed check -- curl -sS --fail --retry 5 {url}")
}

// rooted is a command line that means the same from every folder: each case runs
// in one of its own, so that the files that args name in this one get whole
// paths. A program without a slash is one of PATH, and a word without a dot or a
// slash, such as sync, is no file, whatever lies here.
func rooted(args []string) ([]string, error) {
	args = slices.Clone(args)
	for i, a := range args {
		if i == 0 && !strings.Contains(a, "/") || !strings.ContainsAny(a, "./") {
			continue
		}
		info, err := os.Stat(a)
		here := err == nil && info.Mode().IsRegular()
		if i == 0 && !here {
			return nil, fmt.Errorf("there is no program %s", a)
		}
		if here {
			if args[i], err = filepath.Abs(a); err != nil {
				return nil, err
			}
		}
	}
	return args, nil
}

// before is the report to compare with.
func (c *checkRunCmd) before() (*grading.Report, error) {
	if c.Compare == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Compare)
	if err != nil {
		return nil, err
	}
	r, err := report.Read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Compare, err)
	}
	return r, nil
}

// judge is the exit of a check that went through.
func (c *checkRunCmd) judge(r *grading.Report) error {
	if c.KnownFailures != "" {
		mended, broken := r.Surprises()
		if len(broken) > 0 {
			return fmt.Errorf("%d case(s) fail that are not known to: %s", len(broken), strings.Join(broken, ", "))
		}
		if len(mended) > 0 {
			return fmt.Errorf("%d known failure(s) pass: take them out of %s: %s", len(mended), c.KnownFailures, strings.Join(mended, ", "))
		}
	}
	if c.MinGrade != "" {
		if ok, _ := r.Reaches(c.MinGrade); !ok {
			return fmt.Errorf("the grade is %s, below %s", r.Grade, c.MinGrade)
		}
	}
	return nil
}

type checkListCmd struct{}

// Run lists every case with its rule and what it needs.
func (checkListCmd) Run(sh *shell) error {
	for _, one := range grading.All() {
		fmt.Fprintf(sh.out, "%-32s %s\n%-32s %s\n", one.ID, one.Title, "", one.Rule)
		if len(one.Needs) > 0 {
			needs := make([]string, len(one.Needs))
			for i, n := range one.Needs {
				needs[i] = string(n)
			}
			slices.Sort(needs)
			fmt.Fprintf(sh.out, "%-32s needs: %s\n", "", strings.Join(needs, ", "))
		}
	}
	fmt.Fprintln(sh.out, "\nA client claims:")
	for _, w := range grading.Words {
		fmt.Fprintf(sh.out, "%-32s %s\n", w.Claim, w.Means)
	}
	return nil
}

// terminal is how wide and how coloured stdout is.
func (c *checkRunCmd) terminal(sh *shell) report.Terminal {
	t := report.Terminal{Color: c.Color == "always", All: c.All, Command: len(c.Command) > 0 && !c.Lines}
	if f, ok := sh.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			t.Width = min(w, 120)
		}
		_, plain := sh.getenv("NO_COLOR")
		t.Color = t.Color || c.Color == "auto" && !plain
	}
	return t
}
