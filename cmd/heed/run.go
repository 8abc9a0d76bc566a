package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// commands is the whole command line. Each command lives in a file of its own.
type commands struct {
	Up       upCmd       `cmd:"" help:"Start the gateway. Without a heed.yaml it serves a demo API."`
	Call     callCmd     `cmd:"" help:"Make one call with a policy and stream the answer to stdout."`
	Config   configCmd   `cmd:"" help:"Check a heed.yaml, show what it means, print its schema."`
	Provider providerCmd `cmd:"" help:"Tell what is known of providers: list, show, check a profile of your own, explain an answer."`
	Sim      simCmd      `cmd:"" help:"Serve simulated providers that throttle, fail and lie as told."`
	Check    checkCmd    `cmd:"" help:"Grade any HTTP client: which faults it survives, which it makes worse, and why."`
	Init     initCmd     `cmd:"" help:"Write a commented heed.yaml. Asks nothing."`
	Waiting  waitingCmd  `cmd:"" help:"Show what the calls in a running gateway wait for."`
	Calls    callsCmd    `cmd:"" help:"Look at queued calls, repair them, send them again, erase them, move them."`
	Recover  recoverCmd  `cmd:"" help:"Bring a throttled endpoint back to normal, slowly."`
	Keys     keysCmd     `cmd:"" help:"Make, rotate and check the keys that seal queued calls at rest."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

const about = `heed makes calls to other people's HTTP APIs survive throttling, outages and lies, without making them worse.

Start here: "heed up" runs the gateway with a demo API, and prints the curl line to try.`

// shell is what a command sees of the process.
type shell struct {
	ctx  context.Context
	env  []string
	in   io.Reader
	out  io.Writer
	err  io.Writer
	code int // of the exit, when a command ends without an error
}

// getenv looks name up in the environment that run was given.
func (sh *shell) getenv(name string) (string, bool) {
	for i := len(sh.env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(sh.env[i], "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// say writes one line for people.
func (sh *shell) say(format string, args ...any) { fmt.Fprintf(sh.err, format+"\n", args...) }

// shown ends kong's parsing after it has printed a help page.
type shown struct{ code int }

// run is the program: it reads args and env, works until it is done or ctx
// ends, and returns the exit code.
func run(ctx context.Context, args, env []string, in io.Reader, out, errw io.Writer) (code int) {
	defer func() {
		if s, ok := recover().(shown); ok {
			code = s.code
		}
	}()
	sh := &shell{ctx: ctx, env: env, in: in, out: out, err: errw}
	var cli commands
	parser, err := kong.New(&cli, kong.Name("heed"), kong.Description(about), kong.Writers(out, errw),
		kong.Exit(func(code int) { panic(shown{code}) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		sh.say("heed: %v", err)
		return exitFailure
	}
	k, err := parser.Parse(spelled(args))
	if err != nil {
		sh.say("heed: %v; see heed --help", err)
		return exitUsage
	}
	return sh.end(k.Run(sh))
}

// spelled puts what people try first into the words of the command line: heed,
// heed help, heed help COMMAND, heed --version.
func spelled(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// end tells err, if any, and returns the exit code for it.
func (sh *shell) end(err error) int {
	if err == nil {
		return sh.code
	}
	if err.Error() != "" {
		sh.say("heed: %s", strings.TrimPrefix(err.Error(), "heed: "))
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailure
}
