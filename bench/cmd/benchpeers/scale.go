package main

import (
	"fmt"
	"os"
	"time"

	"benchpeers/fleet"
	"benchpeers/peer"
	"benchpeers/stats"
)

func init() {
	commands["scale"] = command{"how long 1,000 workers with 100,000 calls take to compute (virtual time)", runScale}
}

func runScale(args []string) error {
	f := newFleetFlags("scale", 1, 2*time.Hour)
	f.preset("variants", "retry-after")
	f.preset("only", "^heed/tuned")
	f.preset("workers", "1000")
	f.preset("requests", "100000")
	f.preset("rate", "2000")
	f.preset("burst", "200")
	most := f.Duration("most", 20*time.Second, "fail when a run takes longer than this in real time")
	if err := f.Parse(args); err != nil {
		return err
	}
	*f.virtual = true
	plan, err := f.plan(peer.All())
	if err != nil {
		return err
	}
	fleet.InVirtualTime(func(run func(fleet.Job) fleet.Outcome) {
		t := stats.Table{Head: []string{"contestant", "variant", "real s", "simulated s", "makespan/min", "ok", "failed", "open", "requests", "429"}}
		late := false
		for _, jobs := range plan {
			for _, j := range jobs {
				begin := time.Now()
				o := run(j)
				took := time.Since(begin)
				late = late || took > *most
				t.Add(o.ID, o.Variant, fmt.Sprintf("%.1f", took.Seconds()), fmt.Sprintf("%.1f", o.Makespan.Seconds()),
					fmt.Sprintf("%.2f", o.Ratio()), o.OK, o.Failed, o.Unfinished, o.Server.Requests, o.Server.Throttled)
			}
		}
		fmt.Printf("\n### %d workers, %d calls, %.0f req/s burst %d, outage %v, in virtual time\n\n", *f.workers, *f.requests, *f.rate, *f.burst, *f.outage)
		t.Write(os.Stdout)
		if late {
			fmt.Fprintf(os.Stderr, "benchpeers: a run took longer than %v\n", *most)
			os.Exit(1)
		}
	})
	return nil // not reached
}
