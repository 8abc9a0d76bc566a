package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"benchpeers/proc"
	"benchpeers/stats"

	"github.com/heedproject/heed/bench/queue"
)

func init() {
	commands["queue"] = command{"E: how fast durable queues take jobs in and work them off, and what a backlog costs", runQueue}
}

// queueRun is the flags of the command.
type queueRun struct {
	reps    int
	per     time.Duration
	backlog int
	dir     string
	dsn     string
	only    string
}

func runQueue(args []string) error {
	var q queueRun
	fs := flag.NewFlagSet("queue", flag.ExitOnError)
	fs.IntVar(&q.reps, "reps", 5, "runs of each contestant")
	fs.DurationVar(&q.per, "per", 4*time.Second, "time of each phase of a run")
	fs.IntVar(&q.backlog, "backlog", 1_000_000, "jobs in the large backlog; 0 leaves it out")
	fs.StringVar(&q.dir, "dir", "", "where the files lie (a temporary folder)")
	fs.StringVar(&q.dsn, "postgres", os.Getenv("HEED_TEST_POSTGRES"), "the database of the contestants on Postgres; tools/postgres.sh starts one")
	fs.StringVar(&q.only, "only", strings.Join(queue.Contestants, ","), "contestants, with commas")
	child := fs.String("child", "", "used by itself: the contestant to measure")
	task := fs.String("task", "", "used by itself: what to measure")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *child != "" {
		return queue.Measure(context.Background(), *task, queue.Task{Name: *child, Dir: q.dir, DSN: q.dsn, Time: q.per, Rows: []int{1_000, q.backlog}})
	}
	return q.run()
}

// names are the contestants that can take part.
func (q *queueRun) names() []string {
	var names []string
	for _, n := range strings.Split(q.only, ",") {
		if strings.HasSuffix(n, " postgres") && q.dsn == "" {
			fmt.Fprintf(os.Stderr, "benchpeers: %s is left out: run this through ../tools/postgres.sh\n", n)
			continue
		}
		names = append(names, n)
	}
	return names
}

func (q *queueRun) run() error {
	names := q.names()
	lateness := proc.StartLateness()
	flows := map[string][]queue.Flow{}
	for rep := range q.reps {
		for i := range names {
			name := names[(rep+i)%len(names)]
			var f queue.Flow
			if err := q.measure(name, "flow", &f); err != nil {
				return err
			}
			flows[name] = append(flows[name], f)
		}
	}
	t := stats.Table{Head: []string{"contestant", "runs", "enqueued/s", "range", "CPU µs", "worked/s", "range", "CPU µs"}}
	for _, name := range names {
		var in, inCPU, out, outCPU []float64
		for _, f := range flows[name] {
			in, inCPU = append(in, f.Enqueued), append(inCPU, f.EnqueueCPU)
			out, outCPU = append(out, f.Worked), append(outCPU, f.WorkCPU)
		}
		t.Add(name, strconv.Itoa(len(in)), whole(stats.Median(in)), spread(in), whole(stats.Median(inCPU)), whole(stats.Median(out)), spread(out), whole(stats.Median(outCPU)))
	}
	late := lateness.Stop()
	fmt.Printf("\n### jobs of 1 KB on disk: 64 producers, then workers (medians of interleaved runs of %s each; timers fired up to %.0f ms late)\n\n", q.per, late.P99)
	t.Write(os.Stdout)
	if q.backlog > 0 {
		if err := q.backlogs(names); err != nil {
			return err
		}
	}
	return q.fairness(names)
}

// fairness measures whether a hot key is felt by the others.
func (q *queueRun) fairness(names []string) error {
	t := stats.Table{Head: []string{"contestant", "runs", "alone s", "behind the hot key s", "ratio", "range"}}
	for _, name := range names {
		if !strings.HasPrefix(name, "heed ") {
			continue // it knows no keys
		}
		var alone, behind, ratio []float64
		for range q.reps {
			var f queue.Fair
			if err := q.measure(name, "fair", &f); err != nil {
				return err
			}
			alone, behind, ratio = append(alone, f.Alone), append(behind, f.Behind), append(ratio, f.Behind/f.Alone)
		}
		lo, hi := stats.Range(ratio)
		t.Add(name, len(ratio), fmt.Sprintf("%.2f", stats.Median(alone)), fmt.Sprintf("%.2f", stats.Median(behind)),
			fmt.Sprintf("%.2f", stats.Median(ratio)), fmt.Sprintf("%.2f-%.2f", lo, hi))
	}
	fmt.Print("\n### 5,000 jobs on 15 keys, alone and behind 45,000 on another one (8 of a key at once, attempts of 50 ms)\n\n")
	t.Write(os.Stdout)
	return nil
}

// backlogs measures what a backlog costs.
func (q *queueRun) backlogs(names []string) error {
	t := stats.Table{Head: []string{"contestant", "backlog", "claim of 8, p50 µs", "p99 µs", "RSS MiB"}}
	for _, name := range names {
		var c queue.Claims
		if err := q.measure(name, "claims", &c); err != nil {
			return err
		}
		for i, rows := range c.Rows {
			t.Add(name, strconv.Itoa(rows), whole(c.P50[i]), whole(c.P99[i]), whole(c.RSS[i]))
		}
	}
	fmt.Print("\n### a claim, and the memory of the process, with a backlog of jobs of 1 KB\n\n")
	t.Write(os.Stdout)
	return nil
}

// measure runs one task in a process of its own, with files of its own.
func (q *queueRun) measure(name, task string, into any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(q.dir, "benchqueue")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(self, "queue", "-child", name, "-task", task, "-dir", dir, "-per", q.per.String(), "-backlog", strconv.Itoa(q.backlog))
	cmd.Env = append(os.Environ(), "HEED_TEST_POSTGRES="+q.dsn) // not as an argument, which others can read
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s, %s: %w", name, task, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.Join(fmt.Errorf("%s, %s", name, task), err)
	}
	return nil
}

func whole(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }

func spread(x []float64) string {
	lo, hi := stats.Range(x)
	return whole(lo) + "-" + whole(hi)
}
