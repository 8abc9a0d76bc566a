package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"

	"github.com/heedproject/heed/check"
)

// JSON writes the report for programs, and for Read.
func JSON(w io.Writer, r *check.Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Read reads what JSON wrote.
func Read(text []byte) (*check.Report, error) {
	var r check.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("this is no report of heed check: %w", err)
	}
	if len(r.Results) == 0 {
		return nil, fmt.Errorf("this report has no results; write one with heed check --json FILE")
	}
	for _, one := range r.Results {
		if !slices.Contains([]check.Mark{check.Pass, check.Fail, check.NA, check.Unknown}, one.Mark) {
			return nil, fmt.Errorf("this is no report of heed check: nothing is known of the verdict %q", one.Mark)
		}
	}
	return &r, nil
}

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr"`
	Suites   []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Cases    []aCase `xml:"testcase"`
}

type aCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Failure *failure `xml:"failure"`
	Skipped *skipped `xml:"skipped"`
}

type failure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

// JUnit writes the report in the form that CI servers read. What does not
// apply, does not tell, or is known to fail is skipped.
func JUnit(w io.Writer, r *check.Report) error {
	all := suites{Name: "heed check " + r.Client.Name, Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
	for _, g := range r.Groups {
		s := suite{Name: g.Group}
		for _, one := range r.Results {
			if one.Group == g.Group {
				s.add(one)
			}
		}
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Skipped += s.Skipped
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *suite) add(one check.Result) {
	c := aCase{Name: one.ID, Class: "heed.check." + one.Group, Time: fmt.Sprintf("%.3f", one.Took.Seconds())}
	s.Tests++
	switch {
	case one.Mark == check.Fail && !one.Known:
		s.Failures++
		c.Failure = &failure{one.Cause, one.Title + "\nrule: " + one.Rule.String() + "\n" + Lines(one)}
	case one.Mark != check.Pass:
		s.Skipped++
		c.Skipped = &skipped{one.Cause}
	}
	s.Cases = append(s.Cases, c)
}

// Lines is the timeline of a case, one request a line.
func Lines(one check.Result) string {
	const most = 40
	text := ""
	for i, e := range one.Timeline {
		if i == most {
			return text + fmt.Sprintf("… %d more\n", len(one.Timeline)-most+one.Omitted)
		}
		status := "no answer"
		if e.Status != 0 {
			status = fmt.Sprint(e.Status)
		}
		text += fmt.Sprintf("%8.3f s  %s  #%d %s %s\n", e.At.Seconds(), e.Operation, e.Number, e.Method, status)
	}
	return text
}
