package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/queue"
)

// drop takes an old key out of the file. Often it is the only copy, so that
// the queue is asked first whether it needs the key, or a copy is kept.
func (c *keysRotateCmd) drop(sh *shell) error {
	before, ring, err := c.read()
	if err != nil {
		return usage(err)
	}
	after, err := c.dropped(before, ring)
	if err != nil {
		return usage(err)
	}
	kept := ""
	if c.Force {
		kept = c.File + ".bak-" + time.Now().UTC().Format("20060102T150405Z")
	} else if err := c.unneeded(sh); err != nil {
		return err
	}
	if c.DryRun {
		what := fmt.Sprintf("key %s would be dropped from %s, which holds %s", c.Drop, c.File, strings.Join(ring.IDs(), ", "))
		if kept != "" {
			what += "; the queue would not be asked, and the file as it is kept beside it"
		}
		_, err := fmt.Fprintln(sh.out, what)
		return err
	}
	if kept != "" {
		if err := app.NewKeyFile(kept, before); err != nil {
			return fmt.Errorf("%s is as it was, since no copy of it could be kept: %w", c.File, err)
		}
	}
	if err := app.ReplaceKeyFile(c.File, after); err != nil {
		return fmt.Errorf("%s is as it was: %w", c.File, err)
	}
	sh.say("heed: dropped key %s from %s; start the gateway again, and keep a copy of the file elsewhere", c.Drop, c.File)
	if kept != "" {
		sh.say("heed: the queue was not asked whether it needs the key: the file as it was is %s, to be removed when the gateway runs well without", kept)
	}
	return nil
}

// dropped is the file without an old key.
func (c *keysRotateCmd) dropped(before []byte, ring *queue.Keys) ([]byte, error) {
	switch {
	case !ring.Has(c.Drop):
		return nil, fmt.Errorf("%s holds no key %.40s, only %s", c.File, c.Drop, strings.Join(ring.IDs(), ", "))
	case ring.Active() == c.Drop:
		return nil, fmt.Errorf("key %s seals; put another one in front of it first, with heed keys rotate %s", c.Drop, c.File)
	}
	return without(before, c.Drop), nil
}

// unneeded looks into the queue that the file belongs to, and refuses where
// something of it is under the key, or where that cannot be seen.
func (c *keysRotateCmd) unneeded(sh *shell) (err error) {
	cfg, err := c.owner(sh)
	if err != nil {
		return usage(fmt.Errorf("key %s stays, since nobody knows whether a queue still needs it: %w; --force drops it all the same, and keeps the file as it is beside it", c.Drop, err))
	}
	v, err := sh.vault(cfg)
	if err != nil {
		return fmt.Errorf("key %s stays, since the queue cannot be asked whether it still needs it: %w", c.Drop, err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	use, err := v.KeyUse(sh.ctx)
	if err != nil {
		return fmt.Errorf("key %s stays, since the queue cannot be asked whether it still needs it: %w", c.Drop, err)
	}
	if u := use[c.Drop]; u != (queue.Use{}) {
		return usage(fmt.Errorf("key %s stays: %s", c.Drop, held("it", u, cfg.Queue)))
	}
	return nil
}

// held says what is under an old key, and until when.
func held(key string, u queue.Use, q *config.Queue) string {
	var parts []string
	if u.Records > 0 {
		parts = append(parts, fmt.Sprintf("%s, which heed keys rotate --reseal seals again", records(u.Records)))
	}
	if u.Keys > 0 {
		parts = append(parts, fmt.Sprintf("%s, needed until %s", counted(u.Keys, "idempotency key"), forgotten(q)))
	}
	return fmt.Sprintf("the queue holds under %s %s", key, strings.Join(parts, ", and "))
}

// forgotten is until when the idempotency keys that are taken by now may be
// needed. Nobody says when each was taken, so that it is the latest instant.
func forgotten(q *config.Queue) string {
	window := max(q.Window, queue.DefaultKeyWindow) // an edited call takes its key for the default
	return fmt.Sprintf("%s at the latest (%s, see queue.window), or the expiry of a call that has a later one",
		time.Now().Add(window).UTC().Format(time.RFC3339), span(window))
}

func records(n int) string { return counted(n, "record") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// owner is the configuration whose queue has its keys in the file: the one
// that is named, or heed.yaml.
func (c *keysRotateCmd) owner(sh *shell) (*config.Config, error) {
	name := cmp.Or(c.Config, defaultFile)
	cfg, err := load(name)
	switch {
	case err != nil && c.Config == "":
		return nil, fmt.Errorf("name the heed.yaml that names the file, with --config FILE: %w", err)
	case err != nil:
		return nil, err
	case cfg.Queue == nil:
		return nil, fmt.Errorf("%s has no queue; name the heed.yaml that names the file, with --config FILE", name)
	}
	file, err := os.Stat(c.File)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(keyFiles(sh, cfg.Queue), func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && os.SameFile(info, file)
	}) {
		return nil, fmt.Errorf("the queue of %s does not have its keys in %s; name the heed.yaml that names the file, with --config FILE", name, c.File)
	}
	return cfg, nil
}

// keyFiles lists the files that hold keys of a queue.
func keyFiles(sh *shell, q *config.Queue) (names []string) {
	if len(q.Keys) == 0 {
		return []string{app.OwnKeys(cmp.Or(q.Path, app.QueuePath(sh.value)))}
	}
	for _, ref := range q.Keys {
		if name, ok := strings.CutPrefix(ref.String(), "file:"); ok {
			names = append(names, name)
		}
	}
	return names
}
