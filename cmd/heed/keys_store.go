package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/queue"
)

// What a key of the queue is used for.
const (
	useSeals   = "seals"
	useNeeded  = "still needed"
	useNone    = "may be dropped"
	useMissing = "missing: add it"
)

// vault opens the queue of a configuration.
func (sh *shell) vault(cfg *config.Config) (*app.Vault, error) {
	v, err := app.OpenVault(sh.ctx, cfg, sh.options())
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, queue.ErrOwned):
		return nil, errors.New("a gateway has the queue open, and in SQLite it belongs to one process: stop the gateway, and start it again afterwards")
	case errors.Is(err, queue.ErrStorage), errors.Is(err, queue.ErrFull), errors.Is(err, queue.ErrCorrupt):
		return nil, err
	}
	return nil, usage(err)
}

// keyUse tells what each key is used for: the ring in its order, then those
// that are missing from it.
func keyUse(ctx context.Context, v *app.Vault) ([]keyRow, error) {
	use, err := v.KeyUse(ctx)
	if err != nil {
		return nil, err
	}
	var rows []keyRow
	for _, id := range v.Keys.IDs() {
		u, what := use[id], useNeeded
		switch {
		case id == v.Keys.Active():
			what = useSeals
		case u == queue.Use{}:
			what = useNone
		}
		rows = append(rows, keyRow{ID: id, Use: what, Records: &u.Records, Keys: &u.Keys})
		delete(use, id)
	}
	for _, id := range slices.Sorted(maps.Keys(use)) {
		u := use[id]
		rows = append(rows, keyRow{ID: id, Use: useMissing, Records: &u.Records, Keys: &u.Keys})
	}
	return rows, nil
}

// having lists the ids of the keys with a use.
func having(rows []keyRow, use string) []string {
	var ids []string
	for _, r := range rows {
		if r.Use == use {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// store looks into the queue.
func (c *keysCheckCmd) store(sh *shell) (err error) {
	cfg, err := load(cmp.Or(c.Config, defaultFile))
	if err != nil {
		return err
	}
	v, err := sh.vault(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	rows, err := keyUse(sh.ctx, v)
	if err != nil {
		return err
	}
	if err := sh.keyTable(rows, c.JSON); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Use == useNeeded {
			sh.say("heed: %s", held(r.ID, queue.Use{Records: *r.Records, Keys: *r.Keys}, cfg.Queue))
		}
	}
	if ids := having(rows, useMissing); len(ids) > 0 {
		return usage(fmt.Errorf("%s cannot be opened: add the line of the key to queue.keys, from a copy", strings.Join(ids, ", ")))
	}
	return nil
}

// reseal seals the queue again with the key in front, after putting a new one
// there where a file is named.
func (c *keysRotateCmd) reseal(sh *shell) (err error) {
	cfg, err := load(cmp.Or(c.Config, defaultFile))
	if err != nil {
		return err
	}
	if c.File != "" && cfg.Queue != nil {
		if err := c.fits(sh, cfg.Queue); err != nil {
			return usage(err)
		}
	}
	v, err := sh.vault(cfg) // before anything is changed: it may not be ours
	if err != nil {
		return err
	}
	if c.File != "" {
		err := v.Close()
		if err == nil {
			err = c.change(sh)
		}
		if err != nil {
			return err
		}
		if v, err = sh.vault(cfg); err != nil {
			return fmt.Errorf("nothing was sealed again; heed keys rotate --reseal does it: %w", err)
		}
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return c.seal(sh, cfg.Queue, v)
}

// fits tells whether the key that is put in front of the file will be the one
// that seals.
func (c *keysRotateCmd) fits(sh *shell, q *config.Queue) error {
	if q.Store == config.QueuePostgres {
		return errors.New("gateways may share a queue in Postgres, and each needs the new key before anything is sealed with it: " +
			"heed keys new >>FILE puts one behind the others; start every gateway again, move its line to the front, start them once more, then heed keys rotate --reseal without FILE")
	}
	first := app.OwnKeys(cmp.Or(q.Path, app.QueuePath(sh.value)))
	if len(q.Keys) > 0 {
		name, ok := strings.CutPrefix(q.Keys[0].String(), "file:")
		if !ok {
			return fmt.Errorf("queue.keys[0] is %s, so that a key in %s would not seal: put a new key in front there, then heed keys rotate --reseal without FILE", q.Keys[0], c.File)
		}
		first = name
	}
	a, err := os.Stat(first)
	if err != nil {
		return err
	}
	b, err := os.Stat(c.File)
	if err != nil {
		return err
	}
	if !os.SameFile(a, b) {
		return fmt.Errorf("the queue seals with the first key of %s, not with that of %s", first, c.File)
	}
	return nil
}

// seal seals what is not under the key in front.
func (c *keysRotateCmd) seal(sh *shell, q *config.Queue, v *app.Vault) error {
	rows, err := keyUse(sh.ctx, v)
	if err != nil {
		return err
	}
	left := 0
	for _, r := range rows {
		if r.Use != useSeals || c.DryRun && c.File != "" {
			left += *r.Records
		}
	}
	if c.DryRun {
		_, err := fmt.Fprintf(sh.out, "%s would be sealed again\n", records(left))
		return err
	}
	if q.Store == config.QueuePostgres {
		sh.say("heed: gateways may run meanwhile, as long as each was started with key %s in its ring", v.Keys.Active())
	}
	n, err := v.Reseal(sh.ctx, sh.progress("sealed again", left).at)
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{exitCanceled, fmt.Errorf("interrupted; %d records were sealed again, heed keys rotate --reseal goes on", n)}
	case err != nil:
		return fmt.Errorf("%d records were sealed again, heed keys rotate --reseal goes on when this is mended: %w", n, err)
	}
	if rows, err = keyUse(sh.ctx, v); err != nil {
		return err
	}
	sh.say("heed: sealed %d records again with key %s; start the gateway again where it was stopped", n, v.Keys.Active())
	if ids := having(rows, useNeeded); len(ids) > 0 {
		sh.say("heed: what is left under %s are idempotency keys, which are needed until %s; "+
			"heed keys check --store tells when the key may be dropped", strings.Join(ids, ", "), forgotten(q))
	}
	if ids := having(rows, useNone); len(ids) > 0 {
		sh.say("heed: nothing is left under %s; heed keys rotate FILE --drop ID takes a key out", strings.Join(ids, ", "))
	}
	if c.JSON {
		return json.NewEncoder(sh.out).Encode(map[string]any{"resealed": n, "keys": rows})
	}
	return sh.keyTable(rows, false)
}
