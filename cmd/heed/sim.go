package main

import (
	"cmp"
	"fmt"
	"net"
	"runtime/debug"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack"
	"github.com/heedproject/heed/sim/scenario"
)

type simCmd struct {
	Serve  simServeCmd  `cmd:"" default:"withargs" help:"Serve simulated providers. This is what heed sim does."`
	Packs  simPacksCmd  `cmd:"" help:"List the providers and what they can do."`
	Check  simCheckCmd  `cmd:"" help:"Check scenario files and say what they make."`
	Record simRecordCmd `cmd:"" help:"Record what a real provider does, without its values."`
	Drift  simDriftCmd  `cmd:"" help:"Compare a recording with a simulated provider."`
	Schema simSchemaCmd `cmd:"" help:"Print the JSON Schema of scenario files."`
}

// Help is what heed sim --help says beside its commands.
func (simCmd) Help() string {
	return `heed sim is short for heed sim serve; heed sim serve --help tells the flags, such as --pack and --steps.`
}

type simServeCmd struct {
	Listen   string   `default:"127.0.0.1:8640" placeholder:"ADDR" help:"Where to serve (${default})."`
	Pack     []string `placeholder:"NAME" help:"A provider, or several with commas (generic). See heed sim packs."`
	Seed     uint64   `help:"Another number makes another world."`
	Steps    []string `sep:"none" placeholder:"LINE" help:"What an operation answers at first, such as 'GET /v1/bibs/*: 503 x2, ok'. Repeatable."`
	Scenario string   `placeholder:"FILE" help:"A world in YAML; the other flags go over it."`
}

// Help is what heed sim serve --help says beside the flags.
func (simServeCmd) Help() string {
	return `Every request is told under /_sim/journal and every effect under /_sim/effects. /t/CASE/… is a world apart, with /t/CASE/_sim/… for it. POST /_sim/steps takes other steps, POST /_sim/clock {"advance": "90s"} moves the time on, POST /_sim/webhooks {"url": "http://127.0.0.1:9000/"} asks to be told of events, and POST /_sim/scenario takes a whole world in YAML.

Examples:

    heed sim
    curl -i http://127.0.0.1:8640/v1/bibs/1
    heed sim --pack stripe --steps 'charges.create: commit-then-504, ok'
    heed sim --scenario world.yaml`
}

// Run serves until the context ends.
func (c *simServeCmd) Run(sh *shell) error {
	world, err := c.world()
	if err != nil {
		return usage(err)
	}
	api, err := sim.New(world)
	if err != nil {
		return usage(err)
	}
	defer api.Close()
	if _, told := sh.getenv("GOGC"); !told {
		// The state of most worlds is small, and so would be the heap at which the
		// next collection begins: after every 800 requests.
		debug.SetGCPercent(150)
	}
	return sh.serve(c.Listen, api, func(addr net.Addr) {
		sh.say("heed: simulating %s at http://%s; what came is told at http://%[2]s/_sim/journal", names(world.Packs), addr)
		forgetStart()
	})
}

// world is the scenario, if there is one, with the flags over it.
func (c *simServeCmd) world() (w sim.World, err error) {
	if c.Scenario != "" {
		text, err := slurp(c.Scenario)
		if err != nil {
			return w, err
		}
		if w, err = scenario.Read(c.Scenario, text, pack.Named); err != nil {
			return w, err
		}
	}
	if c.Pack != nil {
		if w.Packs, err = pack.Named(c.Pack...); err != nil {
			return w, err
		}
	}
	if w.Packs == nil {
		w.Packs = []sim.Pack{sim.Generic()}
	}
	if c.Seed != 0 {
		w.Seed = c.Seed
	}
	if c.Steps != nil {
		w.Steps = strings.Join(c.Steps, "\n")
	}
	w.Scenario = scenario.Reader(pack.Named)
	return w, nil
}

func names(packs []sim.Pack) string {
	all := make([]string, len(packs))
	for i, p := range packs {
		all[i] = p.Name
	}
	return strings.Join(all, ", ")
}

type simPacksCmd struct {
	Name string `arg:"" optional:"" help:"Show the operations of this one, its events and the credential that it takes."`
}

// Run lists packs, or the operations of one.
func (c *simPacksCmd) Run(sh *shell) error {
	if c.Name == "" {
		for _, p := range pack.All() {
			fmt.Fprintf(sh.out, "%-12s %3d operations  %s\n", p.Name, len(p.Operations), strings.Join(p.Hosts, ", "))
		}
		return nil
	}
	packs, err := pack.Named(c.Name)
	if err != nil {
		return usage(err)
	}
	p := packs[0]
	fmt.Fprintf(sh.out, "credential: %s\n", p.Access)
	if events := p.Webhooks.Events; len(events) > 0 {
		fmt.Fprintf(sh.out, "events: %s\n", strings.Join(events, ", "))
	}
	for _, o := range p.Operations {
		fmt.Fprintf(sh.out, "%-28s %s\n", cmp.Or(o.Name, o.Route), o.Route)
	}
	return nil
}

type simCheckCmd struct {
	Files []string `arg:"" help:"The scenario files to check."`
}

// Help is what heed sim check --help says beside the flags.
func (simCheckCmd) Help() string {
	return `Every problem is told with line and column and what to write instead. Exits with 0 when all files can be served, with 1 when not.

Example:

    heed sim check scenarios/*.yaml`
}

// Run checks each file and says in a line what it makes.
func (c *simCheckCmd) Run(sh *shell) error {
	bad := 0
	for _, name := range c.Files {
		text, err := slurp(name)
		if err != nil {
			return usage(err)
		}
		w, err := scenario.Read(name, text, pack.Named)
		if err != nil {
			sh.say("%v", err)
			bad++
			continue
		}
		if w.Packs == nil {
			w.Packs = []sim.Pack{sim.Generic()}
		}
		lines := len(strings.Fields(strings.ReplaceAll(w.Steps, " ", "_")))
		fmt.Fprintf(sh.out, "%s: ok, %s; %d line(s) of steps, %d limit(s), %d webhook(s), %d request(s) to begin with, %d case(s) of its own\n",
			name, names(w.Packs), lines, len(w.Limits), len(w.Webhooks), len(w.Begin), len(w.CaseSteps))
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d scenario(s) cannot be served", bad, len(c.Files))
	}
	return nil
}

type simSchemaCmd struct{}

// Run prints the schema.
func (simSchemaCmd) Run(sh *shell) error {
	_, err := sh.out.Write(scenario.Schema())
	return err
}
