package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	grading "github.com/heedproject/heed/check"
)

// board is docs/scoreboard.json.
type board struct {
	Rows []row `json:"rows"`
}

// row is how a client did with one setting.
type row struct {
	Key     string          `json:"key"`
	Client  string          `json:"client"`
	Version string          `json:"version"`
	Setting string          `json:"setting"`
	Set     string          `json:"set"`
	Adapter string          `json:"adapter,omitempty"`
	Note    string          `json:"note,omitempty"`
	Made    string          `json:"made"` // the day
	Seed    uint64          `json:"seed"`
	Claims  []grading.Claim `json:"claims"`
	Grade   string          `json:"grade"`
	Score   float64         `json:"score"`
	Thin    bool            `json:"thin,omitempty"` // the grade rests on little
	Cases   int             `json:"cases"`
	Passed  int             `json:"passed"`
	Groups  []grading.Grade `json:"groups"`
	Failed  []verdict       `json:"failed"`
	Unknown []verdict       `json:"unknown"`
	// NotClaimed are the cases that do not apply.
	NotClaimed []string `json:"not_claimed"`
}

// verdict is why a case was not passed.
type verdict struct {
	Case  string `json:"case"`
	Title string `json:"title"`
	Cause string `json:"cause"`
}

func newRow(c client, setting string, r *grading.Report) row {
	one := row{Key: c.Key, Client: c.Name, Version: r.Client.Version, Setting: setting, Set: c.Set[setting],
		Adapter: c.Adapter, Note: c.Note, Made: r.Began.Format("2006-01-02"), Seed: r.Seed, Claims: r.Client.Claims,
		Grade: r.Grade, Score: r.Score, Thin: r.Thin, Cases: len(r.Results), Groups: r.Groups,
		Failed: []verdict{}, Unknown: []verdict{}, NotClaimed: []string{}}
	slices.Sort(one.Claims)
	for _, res := range r.Results {
		v := verdict{res.ID, res.Title, res.Cause}
		switch res.Mark {
		case grading.Pass:
			one.Passed++
		case grading.Fail:
			one.Failed = append(one.Failed, v)
		case grading.Unknown:
			one.Unknown = append(one.Unknown, v)
		case grading.NA:
			one.NotClaimed = append(one.NotClaimed, res.ID)
		}
	}
	return one
}

// all is the grade over all groups.
func (r row) all() grading.Grade { return grading.Grade{Grade: r.Grade, Score: r.Score, Thin: r.Thin} }

// put replaces the row of the same client and setting.
func (b *board) put(one row) {
	same := func(r row) bool { return r.Key == one.Key && r.Setting == one.Setting }
	if i := slices.IndexFunc(b.Rows, same); i >= 0 {
		b.Rows[i] = one
		return
	}
	b.Rows = append(b.Rows, one)
}

// of returns the row of a client with a setting.
func (b *board) of(key, setting string) (row, bool) {
	for _, r := range b.Rows {
		if r.Key == key && r.Setting == setting {
			return r, true
		}
	}
	return row{}, false
}

// ranked are the rows with a setting, those that pass most first.
func (b *board) ranked(setting string) []row {
	rows := slices.DeleteFunc(slices.Clone(b.Rows), func(r row) bool { return r.Setting != setting })
	slices.SortStableFunc(rows, func(a, b row) int { return b.Passed - a.Passed })
	return rows
}

const docs = "docs/scoreboard"

func load(p place) (*board, error) {
	text, err := os.ReadFile(filepath.Join(p.root, docs+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return &board{}, nil
	}
	if err != nil {
		return nil, err
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("%s.json: %w", docs, err)
	}
	return &b, nil
}

// save writes the board in its three forms. What is in the table goes before
// what was written earlier: settings and notes are words of this program.
func (b *board) save(p place) error {
	var rows []row
	for _, c := range clients {
		for _, setting := range settings {
			if r, ok := b.of(c.Key, setting); ok {
				r.Client, r.Set, r.Adapter, r.Note = c.Name, c.Set[setting], c.Adapter, c.Note
				rows = append(rows, r)
			}
		}
	}
	if b.Rows = rows; len(rows) == 0 {
		return errors.New("there is no row yet; run it without -render")
	}
	for _, r := range rows {
		if r.Cases != rows[0].Cases {
			return fmt.Errorf("%s was tried at %d cases and %s at %d: run all clients again", r.Key, r.Cases, rows[0].Key, rows[0].Cases)
		}
	}
	data, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{".json": string(data) + "\n", ".md": b.markdown(), ".svg": b.picture()} {
		if err := os.WriteFile(filepath.Join(p.root, docs+name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
