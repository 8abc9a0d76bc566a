package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// command is one of the command line; each lives in a file of its own.
type command struct {
	name, help string
	cmd        any
}

func commands() []command {
	return []command{
		{"up", "Start the gateway. Without a heed.yaml it serves a demo API.", new(upCmd)},
		{"call", "Make one call with a policy and stream the answer to stdout.", new(callCmd)},
		{"config", "Check a heed.yaml, show what it means, print its schema.", new(configCmd)},
		{"provider", "Tell what is known of providers: list, show, check a profile of your own, explain an answer.", new(providerCmd)},
		{"sim", "Serve simulated providers that throttle, fail and lie as told.", new(simCmd)},
		{"check", "Grade any HTTP client: which faults it survives, which it makes worse, and why.", new(checkCmd)},
		{"init", "Write a commented heed.yaml. Asks nothing.", new(initCmd)},
		{"waiting", "Show what the calls in a running gateway wait for.", new(waitingCmd)},
		{"calls", "Look at queued calls, repair them, send them again, erase them, move them.", new(callsCmd)},
		{"pause", "Send nothing to an endpoint until it is resumed; queued calls wait.", new(pauseCmd)},
		{"resume", "End a pause or a drain of an endpoint.", new(resumeCmd)},
		{"drain", "Send what is queued for an endpoint, and take in nothing new.", new(drainCmd)},
		{"recover", "Bring a throttled endpoint back to normal, slowly.", new(recoverCmd)},
		{"keys", "Make, rotate and check the keys that seal queued calls at rest.", new(keysCmd)},
		{"version", "Print the version.", new(versionCmd)},
	}
}

// grammar is what args may mean: the command that they name, or all. Kong
// takes milliseconds for all of them, which every start would pay.
func grammar(args []string) (all []kong.Option) {
	for _, c := range commands() {
		o := kong.DynamicCommand(c.name, c.help, "", c.cmd)
		if c.name == args[0] {
			return []kong.Option{o}
		}
		all = append(all, o)
	}
	return all
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
		switch what := recover().(type) {
		case nil:
		case shown:
			code = what.code
		default:
			panic(what) // a mistake of ours, which must not end as a success
		}
	}()
	sh := &shell{ctx: ctx, env: env, in: in, out: out, err: errw}
	args = spelled(args)
	parser, err := kong.New(&struct{}{}, append(grammar(args), kong.Name("heed"), kong.Description(about), kong.Writers(out, errw),
		kong.Exit(func(code int) { panic(shown{code}) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
	if err != nil {
		sh.say("heed: %v", err)
		return exitFailure
	}
	k, err := parser.Parse(args)
	if err != nil {
		sh.say("heed: %v; see %s --help", err, meant(err))
		return exitUsage
	}
	return sh.end(k.Run(sh))
}

// meant is as much of a command line as was understood before err: the command
// whose help tells what is missing.
func meant(err error) string {
	words := []string{"heed"}
	if e, ok := errors.AsType[*kong.ParseError](err); ok {
		for _, p := range e.Context.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(words, " ")
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
		sh.say("heed: %s", told(err))
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailure
}

// rooms are the packages whose errors begin with their name, for Go programs.
// Who typed a command needs none.
var rooms = regexp.MustCompile(`(?m)^(?:(?:heed|check|drift|gateway|observe|provider|sim): )+`)

// told is what err says to people.
func told(err error) string { return rooms.ReplaceAllString(err.Error(), "") }
