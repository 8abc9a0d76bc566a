package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/queue"
)

type keysCmd struct {
	New    keysNewCmd    `cmd:"" help:"Make a key that seals the calls of a queue at rest."`
	Rotate keysRotateCmd `cmd:"" help:"Put a new key in front of a key file; seal what is in the queue again with it."`
	Check  keysCheckCmd  `cmd:"" help:"Tell whether the keys of a queue can be used, which one seals, and which are still needed."`
}

// Help is what heed keys --help says beside the commands.
func (keysCmd) Help() string {
	return `A key file holds one key a line. The first one seals; the others open what was sealed before. Keep copies: without its key a call cannot be sent, nor read by anybody.

Examples:

    heed keys new -o /etc/heed/queue.keys
    heed keys check /etc/heed/queue.keys
    heed keys rotate /etc/heed/queue.keys --reseal
    heed keys check --store`
}

type keysNewCmd struct {
	Output string `short:"o" placeholder:"FILE" help:"Write it to a new file that only you can read, instead of stdout."`
}

// Help is what heed keys new --help says beside the flags.
func (keysNewCmd) Help() string {
	return `Name the file in heed.yaml as queue.keys: [file:/etc/heed/queue.keys], or hand the line over in the environment: [env:HEED_QUEUE_KEY].

Examples:

    heed keys new -o /etc/heed/queue.keys
    HEED_QUEUE_KEY=$(heed keys new) heed up --config heed.yaml`
}

// Run makes the key.
func (c *keysNewCmd) Run(sh *shell) error {
	key := queue.NewKey()
	if c.Output == "" {
		_, err := fmt.Fprintln(sh.out, key.Reveal())
		return err
	}
	switch err := app.NewKeyFile(c.Output, []byte(keyHead+key.Reveal()+"\n")); {
	case errors.Is(err, fs.ErrExist):
		return usage(fmt.Errorf("%s is there already; heed keys rotate puts a new key in front of those that it holds", c.Output))
	case err != nil:
		return usage(err)
	}
	whole, err := filepath.Abs(c.Output)
	if err != nil {
		return err
	}
	sh.say("heed: made key %s in %s; name it in heed.yaml as queue.keys: [file:%s], and keep a copy elsewhere", key.ID(), c.Output, whole)
	return nil
}

// keyHead begins a key file.
const keyHead = "# Keys that seal the calls of a heed queue at rest. The first one seals, the others still open.\n"

type keysRotateCmd struct {
	File   string `arg:"" optional:"" help:"The key file; may be left out with --reseal."`
	Drop   string `placeholder:"ID" help:"Instead take this old key out, if the queue no longer needs it."`
	Force  bool   `help:"With --drop: do not ask the queue; the file as it was is kept as FILE.bak-…"`
	Reseal bool   `help:"Also seal what is in the queue again with the key in front; without FILE, only that."`
	Config string `placeholder:"FILE" help:"With --reseal or --drop: the configuration to take the queue from (heed.yaml)."`
	DryRun bool   `help:"Only say what would be done."`
	JSON   bool   `help:"With --reseal: print what the keys are used for as a JSON document."`
}

// Help is what heed keys rotate --help says beside the flags.
func (keysRotateCmd) Help() string {
	return `The file is replaced in one step: whoever reads it, or an interruption, meets the old keys or the new ones. A gateway that is started again seals with the new key from then on, and still opens with the old ones.

With --reseal what was sealed before is sealed again, so that the old keys can go. A queue in SQLite belongs to one process: stop the gateway first. A queue in Postgres may be in use meanwhile, as long as every gateway has the new key: put one behind the others (heed keys new >>FILE) and start each of them again, move its line to the front and start them once more, then heed keys rotate --reseal without FILE. An interruption loses nothing; heed keys rotate --reseal goes on.

heed keys check --store tells which old keys may be dropped. Idempotency keys stay under the old one for as long as they are remembered (queue.window, 24h): a call that is repeated is known by them. A key that is dropped too early takes the calls with it: SQLite does not open without it, and in Postgres they end as unreadable. Therefore --drop asks the queue of the heed.yaml that names the file, and refuses while something is under the key or where there is no such heed.yaml. --force does not ask, and keeps the file as it was.

Examples:

    heed keys rotate /etc/heed/queue.keys
    heed keys rotate /etc/heed/queue.keys --reseal --config /etc/heed/heed.yaml
    heed keys rotate --reseal
    heed keys rotate /etc/heed/queue.keys --drop 78ee5deeb9ab6f82 --config /etc/heed/heed.yaml --dry-run`
}

// Run changes the key file, and seals the queue again where that is wanted.
func (c *keysRotateCmd) Run(sh *shell) error {
	switch {
	case c.Drop != "" && c.Reseal:
		return usage(errors.New("--drop and --reseal are two steps: first --reseal, then heed keys check --store, then --drop"))
	case c.DryRun && c.JSON:
		return usage(errors.New("--json tells what was done, and --dry-run does nothing"))
	case !c.Reseal && c.JSON:
		return usage(errors.New("--json belongs to --reseal"))
	case !c.Reseal && c.Drop == "" && c.Config != "":
		return usage(errors.New("--config belongs to --reseal or --drop"))
	case c.Drop == "" && c.Force:
		return usage(errors.New("--force belongs to --drop"))
	case c.Reseal:
		return c.reseal(sh)
	case c.File == "":
		return usage(errors.New("which key file? heed keys rotate FILE; only --reseal does without"))
	}
	if c.Drop != "" {
		return c.drop(sh)
	}
	return c.change(sh)
}

// read gets the file, and the keys in it.
func (c *keysRotateCmd) read() (text []byte, ring *queue.Keys, err error) {
	if text, err = os.ReadFile(c.File); err != nil {
		return nil, nil, fmt.Errorf("%w; heed keys new -o FILE makes one", err)
	}
	if ring, err = queue.ReadKeys(bytes.NewReader(text)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.File, err)
	}
	return text, ring, nil
}

// change puts a new key into the file.
func (c *keysRotateCmd) change(sh *shell) error {
	before, ring, err := c.read()
	if err != nil {
		return usage(err)
	}
	if c.DryRun {
		_, err := fmt.Fprintf(sh.out, "a new key would be put in front of those in %s, which holds %s\n", c.File, strings.Join(ring.IDs(), ", "))
		return err
	}
	after, id := added(before)
	if err := app.ReplaceKeyFile(c.File, after); err != nil {
		return fmt.Errorf("%s is as it was: %w", c.File, err)
	}
	then := "start the gateway again, and keep"
	if c.Reseal {
		then = "keep"
	}
	sh.say("heed: put key %s in front of those in %s; %s a copy of the file elsewhere", id, c.File, then)
	return nil
}

// added is the text of a key file with a new key before the first one.
func added(before []byte) (after []byte, id string) {
	key := queue.NewKey()
	for line := range bytes.Lines(before) {
		if text := bytes.TrimSpace(line); after == nil && len(text) > 0 && text[0] != '#' {
			at := bytes.Index(before, line)
			after = bytes.Join([][]byte{before[:at], []byte(key.Reveal() + "\n"), before[at:]}, nil)
		}
	}
	return after, key.ID()
}

// without is the text of a key file without one of its keys.
func without(before []byte, id string) (after []byte) {
	for line := range bytes.Lines(before) {
		if key, err := queue.ParseKey(string(bytes.TrimSpace(line))); err != nil || key.ID() != id {
			after = append(after, line...)
		}
	}
	return after
}
