package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"benchpeers/fleet"
	"benchpeers/peer"
	"benchpeers/windows"
)

func init() {
	commands["windows"] = command{"benchmark B against fixed and sliding windows (virtual time)", runWindows}
}

// preset changes the default of a flag, as -h tells it too.
func (f fleetFlags) preset(name, value string) {
	if err := f.Set(name, value); err != nil {
		panic(err) // the presets are constants
	}
	f.Lookup(name).DefValue = value
}

func runWindows(args []string) error {
	f := newFleetFlags("windows", 9, 30*time.Minute)
	f.preset("variants", "fixed,fixed-hint,sliding,sliding-hint")
	f.preset("only", "^(heed|control)")
	f.preset("burst", "1")
	length := f.Duration("window", time.Second, "length of the window; it admits rate × window requests")
	if err := f.Parse(args); err != nil {
		return err
	}
	*f.virtual = true
	plan, err := f.plan(peer.All())
	if err != nil {
		return err
	}
	sink, err := f.sink()
	if err != nil {
		return err
	}
	fleet.InVirtualTime(func(run func(fleet.Job) fleet.Outcome) {
		enc := json.NewEncoder(sink)
		var outs []fleet.Outcome
		for rep, jobs := range plan {
			for _, j := range jobs {
				o := run(windowed(j, *length))
				o.Rep = rep
				outs = append(outs, o)
				_ = enc.Encode(o.ToRow())
			}
		}
		_ = sink.Close()
		fmt.Printf("\nThe server counts requests in a window of %v; the minimum is that of an even pace.\n", *length)
		fleet.Report(os.Stdout, outs)
	})
	return nil // not reached
}

// windowed puts a server with a window in the place of the one with a bucket.
func windowed(j fleet.Job, length time.Duration) fleet.Job {
	s := j.Server
	cfg := windows.Config{
		Variant: s.Variant, Limit: max(1, int(s.Rate*length.Seconds())), Window: length,
		Service: s.Service, Body: s.Body, OutageAt: s.OutageAt, OutageFor: s.OutageFor,
	}
	j.Provider = func() fleet.Provider { return windows.New(cfg) }
	j.Least = cfg.Minimum
	return j
}
