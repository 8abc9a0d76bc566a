package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/heedproject/heed/sim/drift"
	"github.com/heedproject/heed/sim/pack"
)

type simDriftCmd struct {
	Recording    string            `arg:"" help:"What heed sim record wrote."`
	Pack         string            `required:"" placeholder:"NAME" help:"The simulated provider to compare with."`
	Set          map[string]string `placeholder:"NAME=VALUE" help:"The value of a parameter or field, where a made-up one will not do. Repeatable."`
	Header       []string          `short:"H" sep:"none" placeholder:"'NAME: VALUE'" help:"Sent to the pack with every request. Repeatable."`
	AllowMissing bool              `help:"What the pack leaves out is told, and is no drift."`
}

// Help is what heed sim drift --help says beside the flags.
func (simDriftCmd) Help() string {
	return `Replays the recording against the pack and tells where status, header or shape of the answers differ. No network is used. Exits with 0 when nothing differs, with 1 when something does or nothing could be compared.

Examples:

    heed sim drift recording.jsonl --pack stripe -H 'Authorization: Bearer sk_test_1'
    heed sim drift recording.jsonl --pack stripe --set currency=eur --set source=tok_visa --allow-missing`
}

// Run compares and reports.
func (c *simDriftCmd) Run(sh *shell) error {
	packs, err := pack.Named(c.Pack)
	if err != nil {
		return usage(err)
	}
	o := drift.Options{Values: c.Set, Header: http.Header{}}
	for _, field := range c.Header {
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			return usage(errors.New("sim drift: a header has no colon; write -H 'Name: value'"))
		}
		o.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	in, err := os.Open(c.Recording)
	if err != nil {
		return usage(err)
	}
	defer in.Close()
	recording, err := drift.Read(c.Recording, in)
	if err != nil {
		return usage(err)
	}
	report, err := drift.Compare(recording, packs[0], o)
	if err != nil {
		return err
	}
	return c.tell(sh, report)
}

func (c *simDriftCmd) tell(sh *shell, r drift.Report) error {
	drifted := 0
	for i, d := range r.Differences {
		if i == 0 || r.Differences[i-1].Operation != d.Operation {
			name := d.Operation
			if name == "" {
				name = "no operation"
			}
			fmt.Fprintln(sh.out, name)
		}
		fmt.Fprintf(sh.out, "  %s\n", d)
		if !d.Lacks || !c.AllowMissing {
			drifted++
		}
	}
	for _, s := range r.Skipped {
		sh.say("heed: not compared: %s", s)
	}
	fmt.Fprintf(sh.out, "%d of %d exchange(s) compared with %s: %d difference(s)\n", r.Compared, r.Exchanges, c.Pack, len(r.Differences))
	switch {
	case drifted > 0:
		return fmt.Errorf("sim drift: %s has drifted in %d place(s)", c.Pack, drifted)
	case r.Compared == 0 && len(r.Differences) == 0:
		return errors.New("sim drift: nothing could be compared; give values with --set and the credential with -H")
	}
	return nil
}
