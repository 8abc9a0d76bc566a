package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	grading "github.com/heedproject/heed/check"
	"github.com/heedproject/heed/check/report"
)

// outlet is one way in which the report was asked for, and where it goes.
type outlet struct {
	flag, file string
	write      func(io.Writer, *grading.Report) error
	to         *output // nil: stdout
}

// forms opens every file that the report goes to. It is called before the check,
// so that a place that cannot be written to costs no run.
func (c *checkRunCmd) forms() (all []outlet, err error) {
	stdout := ""
	for _, f := range []outlet{{"--json", c.JSON, report.JSON, nil}, {"--junit", c.JUnit, report.JUnit, nil},
		{"--html", c.HTML, report.HTML, nil}, {"--badge", c.Badge, report.Badge, nil}} {
		switch {
		case f.file == "":
			continue
		case f.file == "-" && stdout != "":
			err = fmt.Errorf("%s and %s cannot both go to stdout; name a file for one of them", stdout, f.flag)
		case f.file == "-":
			stdout = f.flag
		default:
			if f.to, err = openForm(f.flag, f.file); err == nil {
				err = f.apart(all)
			}
		}
		if all = append(all, f); err != nil {
			drop(all)
			return nil, err
		}
	}
	return all, nil
}

// apart returns an error where another form goes to the same file, whatever it
// is called.
func (o *outlet) apart(others []outlet) error {
	own, err := o.to.part.Stat()
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.to == nil {
			continue
		}
		if info, err := other.to.part.Stat(); err == nil && os.SameFile(own, info) {
			return fmt.Errorf("%s and %s cannot both go to %s; name another file", other.flag, o.flag, o.file)
		}
	}
	return nil
}

// openForm makes the file in which a form is written until it is whole.
func openForm(flag, name string) (*output, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s %s is a directory; name a file", flag, name)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s %s is no regular file; for stdout write %s -", flag, name, flag)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s cannot be written: %w", flag, err)
	}
	part, err := os.Create(name + ".part")
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", flag, err)
	}
	return &output{Writer: part, name: name, part: part}, nil
}

// drop removes the files of forms that were not written.
func drop(all []outlet) {
	for _, f := range all {
		if f.to != nil {
			_ = f.to.drop() // what went wrong before is what is told
		}
	}
}

// write writes the report in every form that was asked for. The scorecard goes
// to stdout, unless another form goes there; it comes first, so that no file
// that fails takes it along.
func (c *checkRunCmd) write(sh *shell, r, old *grading.Report, forms []outlet) error {
	var errs []error
	if !slices.ContainsFunc(forms, func(o outlet) bool { return o.to == nil }) {
		errs = append(errs, c.card(sh, r, old))
	}
	for _, f := range forms {
		if err := f.save(sh.out, r); err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be written: %w", f.flag, err))
		}
	}
	return errors.Join(errs...)
}

// card writes the scorecard, and what has changed since old.
func (c *checkRunCmd) card(sh *shell, r, old *grading.Report) error {
	t := c.terminal(sh)
	if err := report.Text(sh.out, r, t); err != nil || old == nil {
		return err
	}
	return report.Changes(sh.out, old, r, t)
}

// save writes one form and gives its file the name.
func (o *outlet) save(stdout io.Writer, r *grading.Report) error {
	if o.to == nil {
		return o.write(stdout, r)
	}
	if err := o.write(o.to, r); err != nil {
		return errors.Join(err, o.to.drop())
	}
	return o.to.keep()
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
