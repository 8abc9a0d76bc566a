package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/queue"
)

type keysCheckCmd struct {
	Files  []string `arg:"" optional:"" name:"file" help:"Key files, the one that seals first; without any, those of the configuration."`
	Config string   `placeholder:"FILE" help:"The configuration to take queue.keys from (heed.yaml)."`
	Store  bool     `help:"Look into the queue: how much is under each key, and which ones may be dropped."`
	JSON   bool     `help:"Print a JSON document."`
}

// Help is what heed keys check --help says beside the flags.
func (keysCheckCmd) Help() string {
	return `Exits with 0 if a gateway could seal with them and with 2 if not. A key file that others on this machine can read is a problem too.

With --store it counts what is under each key: requests, answers, earlier revisions and idempotency keys. A queue in SQLite belongs to one process: stop the gateway first.

Examples:

    heed keys check
    heed keys check /etc/heed/queue.keys
    heed keys check --store --config /etc/heed/heed.yaml`
}

// keyText is what may hold keys, and where it comes from.
type keyText struct{ from, text string }

// keyRow is one key, as it is told.
type keyRow struct {
	ID   string `json:"id"`
	Use  string `json:"use"`
	From string `json:"from,omitempty"`
	// What is under it in the queue; nil: nobody has looked.
	Records *int `json:"records,omitempty"`
	Keys    *int `json:"idempotency_keys,omitempty"`
}

// Run checks the keys.
func (c *keysCheckCmd) Run(sh *shell) error {
	if c.Store && len(c.Files) > 0 {
		return usage(errors.New("--store takes the keys from the configuration, as the queue's: leave the files out"))
	}
	if c.Store {
		return c.store(sh)
	}
	texts, err := c.read(sh)
	if err != nil {
		return usage(err)
	}
	rows, problems := keyRows(texts)
	if len(rows) > 0 {
		if err := sh.keyTable(rows, c.JSON); err != nil {
			return err
		}
	}
	if err := errors.Join(problems...); err != nil {
		return usage(err)
	}
	return nil
}

// keyRows lists the keys, and what is wrong with them.
func keyRows(texts []keyText) (rows []keyRow, problems []error) {
	var all strings.Builder
	for _, k := range texts {
		ring, err := queue.ReadKeys(strings.NewReader(k.text))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", k.from, err))
			continue
		}
		for _, id := range ring.IDs() {
			use := "opens"
			if len(rows) == 0 {
				use = "seals and opens"
			}
			rows = append(rows, keyRow{ID: id, Use: use, From: k.from})
		}
		all.WriteString(k.text + "\n")
		problems = append(problems, private(k.from))
	}
	if len(rows) > 0 {
		if _, err := queue.ReadKeys(strings.NewReader(all.String())); err != nil {
			problems = append(problems, fmt.Errorf("together: %w", err))
		}
	}
	return rows, problems
}

// keyTable prints keys.
func (sh *shell) keyTable(rows []keyRow, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(sh.out).Encode(map[string]any{"keys": rows})
	}
	head := []string{"KEY", "USE", "FROM"}
	if rows[0].Records != nil {
		head = []string{"KEY", "RECORDS", "IDEMPOTENCY KEYS", "USE"}
	}
	t := grid{head}
	for _, r := range rows {
		if r.Records == nil {
			t = append(t, []string{r.ID, r.Use, r.From})
			continue
		}
		t = append(t, []string{r.ID, strconv.Itoa(*r.Records), strconv.Itoa(*r.Keys), r.Use})
	}
	return t.write(sh.out, columns{Width: sh.width(), Wrap: []int{len(head) - 1}})
}

// read gets the keys from files, or from where the configuration says.
func (c *keysCheckCmd) read(sh *shell) (texts []keyText, err error) {
	for _, name := range c.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, keyText{"file:" + name, string(text)})
	}
	if len(c.Files) > 0 {
		return texts, nil
	}
	cfg, _, err := config.Load(cmp.Or(c.Config, defaultFile))
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.Queue == nil:
		return nil, fmt.Errorf("%s has no queue, which could have keys", cfg.File)
	case len(cfg.Queue.Keys) == 0:
		return nil, fmt.Errorf("%s names no queue.keys: heed up then makes one beside the database at its first start, as good as none for whoever reads both; make one with heed keys new", cfg.File)
	}
	for i, ref := range cfg.Queue.Keys {
		text, err := ref.Text(sh.value, os.ReadFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Where(fmt.Sprintf("queue.keys[%d]", i)), err)
		}
		texts = append(texts, keyText{ref.String(), string(text)})
	}
	return texts, nil
}

// private tells whether others can read a file.
func private(from string) error {
	name, ok := strings.CutPrefix(from, "file:")
	if !ok {
		return nil
	}
	info, err := os.Stat(name)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s can be read by others (%s): chmod 600 %[1]s", name, info.Mode().Perm())
	}
	return err
}
