package main

import (
	"fmt"
	"slices"
	"strings"

	grading "github.com/heedproject/heed/check"
)

const head = `# Scoreboard

What the HTTP clients that people use do when a provider throttles, fails and lies, as ` + "`heed check`" + ` saw it on
the wire. Made by ` + "`scoreboard/run.sh`" + `, on %s, with %d cases for each client and setting.

heed check, and so this page, is made by the people who make heed. What a client ought to do is written down with
its source in the check (` + "`heed check list`" + `), which shares no code with heed; every verdict has a sentence with the
numbers below, and [scoreboard.json](scoreboard.json) has them for programs. If you think that a client is set up
badly, its adapter is some twenty lines: mend it and run ` + "`scoreboard/run.sh NAME`" + `.

![Clients and groups of cases, with the best settings](scoreboard.svg)

## How to read it

- **Grade and number** are the weight of what was passed, as a part of what was passed or failed: A+ is all of it,
  A 93 %%, B 80 %%, C 65 %%, D 50 %%. The number is rounded down. ~ marks a grade that rests on less than half of what
  was tried, because the rest is unknown.
- **n/a**, or – in a group: the client does not claim to do this, so it is not held against it. A client that claims
  little is judged by little: http.Client without retries is not graded for how it retries. So the lines are in
  the order of how many cases were *passed*, and the grade says how well a client keeps what it claims.
- **unknown**: what was seen does not tell, mostly because the client gave up after its first request, so that how
  it waits was not seen. It counts for nothing.
- **Best** settings are those that the client's own documentation has for calls that may fail, with pauses of
  300 ms to 2 s where that can be set, as a check is short, and with retries kept to requests that may be repeated. **Default**
  is the client with nothing set.
- A client claims to retry where its documentation says that it repeats after a status such as 503. Then all cases of
  retrying are asked of it: also the kinds of failure that it leaves out, and that it comes back no earlier than
  Retry-After says, whether or not its documentation has a word about that field.
- An error is what the library says, as it says it: who logs it logs a credential that stands in its URL.
`

const foot = `
## How it is made

` + "`heed check`" + ` starts the client, or for a command template runs it once for each operation, and lets it loose on a
simulated provider on the same machine; it is judged by the simulator's journal alone. Each client is reached by an
adapter of at most 40 lines in [examples/check](../examples/check) that hands operations over and tells what came of
them; the settings are in the adapter. The adapters of one language share a file that reads the lines.

All cases are tried, many at a time. What a client did not pass is then tried again with fewer at a time, and the
last verdict counts: what is told above as failed has failed at least twice, but for the fleet. Where a client fails by
chance (a jitter that is taken off Retry-After, say) that favours it. The fleet is 32 processes, and a machine of two
cores spreads what wakes in one instant: where it was too busy to tell, the verdict is unknown.

The versions are those of Debian 12 for curl, wget and Python, those of package-lock.json for Node and those of go.mod
for Go. Run it again with

    scoreboard/run.sh              # all: half an hour, more on a busy machine
    scoreboard/run.sh curl httpx   # these only

It needs Go and git; what else is missing it installs with apt-get and npm. The reports with a timeline for every
case are left in scoreboard/out/reports.
`

// markdown is the page for people.
func (b *board) markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, head, b.day(), b.Rows[0].Cases)
	for _, s := range []struct{ setting, title string }{{best, "Best settings"}, {untuned, "Default settings"}} {
		fmt.Fprintf(&w, "\n## %s\n\n", s.title)
		table(&w, b.ranked(s.setting))
	}
	w.WriteString("\n## Clients and settings\n\n")
	for _, c := range clients {
		b.describe(&w, c)
	}
	w.WriteString("## What was not passed\n\n")
	for _, setting := range settings {
		for _, r := range b.ranked(setting) {
			causes(&w, r)
		}
	}
	w.WriteString(foot)
	return w.String()
}

// day is when the board was made, or the days between which.
func (b *board) day() string {
	var days []string
	for _, r := range b.Rows {
		days = append(days, r.Made)
	}
	if first, last := slices.Min(days), slices.Max(days); first != last {
		return first + " to " + last
	}
	return days[0]
}

// table has a line for each client and a column for each group.
func table(w *strings.Builder, rows []row) {
	if len(rows) == 0 {
		return
	}
	w.WriteString("| client | all | passed | failed | unknown | n/a |")
	var line strings.Builder
	line.WriteString("|---|---|--:|--:|--:|--:|")
	for _, g := range rows[0].Groups {
		fmt.Fprintf(w, " %s |", g.Group)
		line.WriteString("---|")
	}
	fmt.Fprintf(w, "\n%s\n", line.String())
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | **%s** | %d | %d | %d | %d |", r.Client, mark(r.all()), r.Passed, len(r.Failed), len(r.Unknown), len(r.NotClaimed))
		for _, g := range r.Groups {
			fmt.Fprintf(w, " %s |", mark(g))
		}
		w.WriteString("\n")
	}
}

// mark is a grade and its score; – is nothing to grade.
func mark(g grading.Grade) string {
	if g.Grade == "-" {
		return "–"
	}
	return fmt.Sprintf("%s %d", g.Told(), percent(g.Score))
}

// percent is rounded down, so that 100 is all. What is a whole number but for
// the last bits of a float64 stays one.
func percent(score float64) int { return int(score*100 + 1e-9) }

func (b *board) describe(w *strings.Builder, c client) {
	r, ok := b.of(c.Key, best)
	if !ok {
		return
	}
	fmt.Fprintf(w, "**%s** %s", c.Name, r.Version)
	if c.Adapter != "" {
		fmt.Fprintf(w, " ([%s](../%s))", strings.TrimPrefix(c.Adapter, "examples/check/"), c.Adapter)
	}
	w.WriteString("\n\n")
	for _, setting := range settings {
		if r, ok := b.of(c.Key, setting); ok {
			fmt.Fprintf(w, "- %s: %s. Claims: %s\n", setting, r.Set, claimed(r.Claims))
		}
	}
	if c.Note != "" {
		fmt.Fprintf(w, "- %s\n", c.Note)
	}
	w.WriteString("\n")
}

func claimed(all []grading.Claim) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = string(c)
	}
	return strings.Join(words, ", ")
}

// causes lists what a client has not passed.
func causes(w *strings.Builder, r row) {
	if len(r.Failed)+len(r.Unknown) == 0 {
		fmt.Fprintf(w, "%s, %s: nothing.\n\n", r.Client, r.Setting)
		return
	}
	fmt.Fprintf(w, "<details><summary>%s, %s: %d failed, %d unknown</summary>\n\n", r.Client, r.Setting, len(r.Failed), len(r.Unknown))
	for _, v := range r.Failed {
		fmt.Fprintf(w, "- `%s` (%s): %s\n", v.Case, v.Title, plain(v.Cause))
	}
	for _, v := range r.Unknown {
		fmt.Fprintf(w, "- *unknown* `%s` (%s): %s\n", v.Case, v.Title, plain(v.Cause))
	}
	w.WriteString("\n</details>\n\n")
}

// plain keeps words of a client from being taken for markup.
func plain(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", "\\*", "|", "\\|", "\n", " ").Replace(text)
}
