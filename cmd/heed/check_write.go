package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	grading "github.com/heedproject/heed/check"
	"github.com/heedproject/heed/check/report"
)

// write writes the report in every form that was asked for. The scorecard goes
// to stdout, unless another form goes there.
func (c *checkRunCmd) write(sh *shell, r, old *grading.Report) error {
	card := true
	for _, form := range []struct {
		file  string
		write func(io.Writer, *grading.Report) error
	}{{c.JSON, report.JSON}, {c.JUnit, report.JUnit}, {c.HTML, report.HTML}, {c.Badge, report.Badge}} {
		switch form.file {
		case "":
			continue
		case "-":
			card = false
			if err := form.write(sh.out, r); err != nil {
				return err
			}
			continue
		}
		if err := saveReport(form.file, r, form.write); err != nil {
			return err
		}
	}
	if !card {
		return nil
	}
	t := c.terminal(sh)
	if err := report.Text(sh.out, r, t); err != nil || old == nil {
		return err
	}
	return report.Changes(sh.out, old, r, t)
}

func saveReport(name string, r *grading.Report, write func(io.Writer, *grading.Report) error) error {
	out, err := openOutput(name, io.Discard)
	if err != nil {
		return err
	}
	if err := write(out, r); err != nil {
		_ = out.drop()
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return out.keep()
}

// meter shows on stderr how far a check has come: one line that is written
// over at a terminal, else a line every five seconds.
type meter struct {
	sh     *shell
	live   bool
	shown  time.Time
	failed int
}

func newMeter(sh *shell) *meter {
	f, ok := sh.err.(*os.File)
	return &meter{sh: sh, live: ok && term.IsTerminal(int(f.Fd())), shown: time.Now()}
}

// tell is told of every case that has ended.
func (m *meter) tell(done, all int, r grading.Result) {
	if r.Mark == grading.Fail {
		m.failed++
	}
	switch {
	case m.live:
		fmt.Fprintf(m.sh.err, "\r\x1b[K%d of %d cases, %d failed; %s", done, all, m.failed, r.ID)
	case time.Since(m.shown) >= 5*time.Second:
		m.shown = time.Now()
		m.sh.say("%d of %d cases, %d failed", done, all, m.failed)
	}
}

func (m *meter) clear() {
	if m.live {
		fmt.Fprint(m.sh.err, "\r\x1b[K")
	}
}
