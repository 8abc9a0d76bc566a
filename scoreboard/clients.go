package main

import "path/filepath"

// A setting is how a client is set up.
const (
	best    = "best"    // as its documentation advises for calls over an unreliable network
	untuned = "default" // as it is when nothing is set
)

var settings = []string{best, untuned}

// client is one line of the scoreboard.
type client struct {
	Key  string // names it on the command line
	Name string
	// Adapter is the file that speaks for it, below the root of the repository.
	// "": none, it is a command or a gateway.
	Adapter string
	// Run is how it is started with a setting.
	Run func(place, string) start
	// Set says what is set, by setting.
	Set map[string]string
	// Note says what a reader should know before comparing.
	Note string
}

// start is what heed check is told of a client.
type start struct {
	Name    string   // of its reports
	Args    []string // after --
	Lines   bool
	Claim   []string
	Without []string
	Gateway string   // heed.yaml of the gateway that is checked; %s is the address that it leads to
	Version []string // a command that prints its version, where the client does not tell
}

// place is where things are on this machine.
type place struct {
	root   string // the repository
	bin    string // the programs that were built
	python string
}

// program is a Go client.
func program(name string) func(place, string) start {
	return func(p place, setting string) start {
		return start{Lines: true, Args: []string{filepath.Join(p.bin, name), setting}}
	}
}

// script is a client that an interpreter runs.
func script(interpreter, file string) func(place, string) start {
	return func(p place, setting string) start {
		run := interpreter
		if run == "python3" {
			run = p.python
		}
		return start{Lines: true, Args: []string{run, filepath.Join(p.root, file), setting}}
	}
}

// adapted is a client whose adapter an interpreter runs.
func adapted(c client, interpreter string) client {
	c.Run = script(interpreter, c.Adapter)
	return c
}

// built is a client whose adapter is a Go program in its own folder.
func built(c client) client {
	c.Run = program(filepath.Base(filepath.Dir(c.Adapter)))
	return c
}

// request are the arguments by which curl takes the request.
var request = []string{"-X", "{method}", "-H", "{header}", "--data-binary", "{body}", "{url}"}

func curl(_ place, setting string) start {
	s := start{Version: []string{"curl", "--version"}}
	if setting == best {
		s.Args = append([]string{"curl", "-sS", "--fail", "--retry", "5", "--retry-max-time", "60", "--max-time", "3"}, request...)
		s.Claim = []string{"keyed", "timeout=3s"}
		return s
	}
	s.Args = append([]string{"curl"}, request...)
	s.Without = []string{"retry"}
	return s
}

func wget(_ place, setting string) start {
	s := start{Version: []string{"wget", "--version"}, Args: []string{"wget", "-O", "-"}}
	if setting == best {
		s.Args = append(s.Args, "-nv", "--tries=6", "--waitretry=2", "--timeout=3",
			"--retry-on-http-error=408,425,429,500,502,503,504")
		s.Claim = []string{"keyed", "timeout=3s", "cap=2s"}
	} else {
		s.Without = []string{"retry"}
	}
	s.Args = append(s.Args, "--method", "{method}", "--header", "{header}", "--body-data", "{body}", "{url}")
	return s
}

// plainEndpoint is an endpoint of which nothing is said but where it leads.
const plainEndpoint = `version: 1
endpoints:
  check:
    url: http://%s
    networks: [127.0.0.1/32]
    auth: {kind: passthrough}
`

// setEndpoint has what the adapter of the library has.
const setEndpoint = plainEndpoint + `    backoff: {base: 300ms, cap: 2s}
    breaker: {on_open: fail}
    limits: {concurrency: 8, tenant_share: 0.75}
    timeouts: {attempt: 3s}
    verify: {mode: full, max_age: 1m}
    idempotency: {header: Idempotency-Key, from: random}
`

func gateway(_ place, setting string) start {
	s := start{Gateway: plainEndpoint, Claim: []string{"retry", "pace", "session", "budget", "breaker"}}
	if setting == best {
		s.Gateway = setEndpoint
		s.Claim = append(s.Claim, "keyed", "key", "validate", "envelope", "stale", "concurrency=8", "cap=2s", "timeout=3s", "tenant")
	}
	return s
}
