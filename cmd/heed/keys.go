package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/queue"
)

type keysCmd struct {
	New    keysNewCmd    `cmd:"" help:"Make a key that seals the calls of a queue at rest."`
	Rotate keysRotateCmd `cmd:"" help:"Put a new key in front of a key file; the old ones still open what they sealed."`
	Check  keysCheckCmd  `cmd:"" help:"Tell whether the keys of a queue can be used, and which one seals."`
}

// Help is what heed keys --help says beside the commands.
func (keysCmd) Help() string {
	return `A key file holds one key a line. The first one seals; the others open what was sealed before. Keep copies: without its key a call cannot be sent, nor read by anybody.

Examples:

    heed keys new -o /etc/heed/queue.keys
    heed keys check /etc/heed/queue.keys
    heed keys rotate /etc/heed/queue.keys`
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
	f, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("%s is there already; heed keys rotate puts a new key in front of those that it holds", c.Output))
	}
	if err != nil {
		return usage(err)
	}
	if err := put(f, []byte(keyHead+key.Reveal()+"\n")); err != nil {
		return errors.Join(err, os.Remove(c.Output))
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

// put writes a file to the disk and closes it.
func put(f *os.File, text []byte) error {
	_, err := f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

type keysRotateCmd struct {
	File   string `arg:"" help:"The key file."`
	Drop   string `placeholder:"ID" help:"Instead take this old key out, when nothing that it sealed is left."`
	DryRun bool   `help:"Only say what would be done."`
}

// Help is what heed keys rotate --help says beside the flags.
func (keysRotateCmd) Help() string {
	return `The file is replaced in one step: whoever reads it, or an interruption, meets the old keys or the new ones. A gateway that is started again seals with the new key from then on. Take an old key out once the calls that it sealed have ended and are erased (queue.dead_ttl after the last of them); dropped too early, these calls end as unreadable.

Examples:

    heed keys rotate /etc/heed/queue.keys
    heed keys rotate /etc/heed/queue.keys --drop 78ee5deeb9ab6f82 --dry-run`
}

// Run changes the key file.
func (c *keysRotateCmd) Run(sh *shell) error {
	before, err := os.ReadFile(c.File)
	if err != nil {
		return usage(fmt.Errorf("%w; heed keys new -o FILE makes one", err))
	}
	ring, err := queue.ReadKeys(bytes.NewReader(before))
	if err != nil {
		return usage(fmt.Errorf("%s: %w", c.File, err))
	}
	after, did, would := c.added(before)
	if c.Drop != "" {
		if after, err = c.dropped(before, ring); err != nil {
			return usage(err)
		}
		did, would = "dropped key "+c.Drop+" from", "key "+c.Drop+" would be dropped from"
	}
	if c.DryRun {
		_, err := fmt.Fprintf(sh.out, "%s %s, which holds %s\n", would, c.File, strings.Join(ring.IDs(), ", "))
		return err
	}
	if err := replace(c.File, after); err != nil {
		return fmt.Errorf("%s is as it was: %w", c.File, err)
	}
	sh.say("heed: %s %s; start the gateway again, and keep a copy of the file elsewhere", did, c.File)
	return nil
}

// added is the file with a new key before the first one.
func (c *keysRotateCmd) added(before []byte) (after []byte, did, would string) {
	key := queue.NewKey()
	for line := range bytes.Lines(before) {
		if text := bytes.TrimSpace(line); after == nil && len(text) > 0 && text[0] != '#' {
			at := bytes.Index(before, line)
			after = bytes.Join([][]byte{before[:at], []byte(key.Reveal() + "\n"), before[at:]}, nil)
		}
	}
	return after, "put key " + key.ID() + " in front of those in", "a new key would be put in front of those in"
}

// dropped is the file without an old key.
func (c *keysRotateCmd) dropped(before []byte, ring *queue.Keys) ([]byte, error) {
	switch {
	case !ring.Has(c.Drop):
		return nil, fmt.Errorf("%s holds no key %.40s, only %s", c.File, c.Drop, strings.Join(ring.IDs(), ", "))
	case ring.Active() == c.Drop:
		return nil, fmt.Errorf("key %s seals; put another one in front of it first, with heed keys rotate %s", c.Drop, c.File)
	}
	var after []byte
	for line := range bytes.Lines(before) {
		if key, err := queue.ParseKey(string(bytes.TrimSpace(line))); err != nil || key.ID() != c.Drop {
			after = append(after, line...)
		}
	}
	return after, nil
}

// replace puts other text into a file, in one step and for the owner that it
// has alone: often a gateway reads it that is not root, who rotates.
func replace(name string, text []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // 0600
	if err != nil {
		return err
	}
	if err = sameOwner(f, info); err == nil {
		err = put(f, text)
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

type keysCheckCmd struct {
	Files  []string `arg:"" optional:"" name:"file" help:"Key files, the one that seals first; without any, those of the configuration."`
	Config string   `placeholder:"FILE" help:"The configuration to take queue.keys from (heed.yaml)."`
}

// Help is what heed keys check --help says beside the flags.
func (keysCheckCmd) Help() string {
	return `Exits with 0 if a gateway could seal with them and with 2 if not. A key file that others on this machine can read is a problem too.

Examples:

    heed keys check
    heed keys check /etc/heed/queue.keys`
}

// keyText is what may hold keys, and where it comes from.
type keyText struct{ from, text string }

// Run checks the keys.
func (c *keysCheckCmd) Run(sh *shell) error {
	texts, err := c.read(sh)
	if err != nil {
		return usage(err)
	}
	t := grid{{"KEY", "USE", "FROM"}}
	var all strings.Builder
	var problems []error
	for _, k := range texts {
		ring, err := queue.ReadKeys(strings.NewReader(k.text))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", k.from, err))
			continue
		}
		for _, id := range ring.IDs() {
			use := "opens"
			if len(t) == 1 {
				use = "seals and opens"
			}
			t = append(t, []string{id, use, k.from})
		}
		all.WriteString(k.text + "\n")
		problems = append(problems, private(k.from))
	}
	if len(t) > 1 {
		if _, err := queue.ReadKeys(strings.NewReader(all.String())); err != nil {
			problems = append(problems, fmt.Errorf("together: %w", err))
		}
		if err := t.write(sh.out, columns{Width: sh.width(), Wrap: []int{2}}); err != nil {
			return err
		}
	}
	if err := errors.Join(problems...); err != nil {
		return usage(err)
	}
	return nil
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
			return nil, fmt.Errorf("queue.keys[%d]: %w", i, err)
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
