package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/config"
)

type configCmd struct {
	Check  configCheck  `cmd:"" help:"Tell every problem of a heed.yaml, with line, column and remedy."`
	Show   configShow   `cmd:"" help:"Print the configuration in force: defaults filled in, secrets as references."`
	Schema configSchema `cmd:"" help:"Print the JSON Schema of heed.yaml, for editors."`
}

// configFile names the file, by itself or as other commands do.
type configFile struct {
	File   string `arg:"" optional:"" help:"The file (heed.yaml)."`
	Config string `placeholder:"FILE" help:"The same as FILE, as with other commands."`
}

func (f *configFile) name() (string, error) {
	if f.File != "" && f.Config != "" {
		return "", usage(fmt.Errorf("the file is named twice, as %s and as --config %s: leave one out", f.File, f.Config))
	}
	return cmp.Or(f.File, f.Config, defaultFile), nil
}

type configCheck struct {
	configFile
	Strict bool `help:"Take warnings for problems."`
}

// Help is what heed config check --help says beside the flags.
func (configCheck) Help() string {
	return `Exits with 0 when the file can be used and with 2 when not. Warnings tell of settings that are valid and do not fit together, and of the folder and the key files of the queue where they are not on this machine; notes, of environment variables that are not set here. Nothing secret is shown.

Examples:

    heed config check
    heed config check deploy/heed.yaml --strict`
}

// Run checks the file.
func (c *configCheck) Run(sh *shell) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	cfg, warnings, err := config.Load(name)
	if err != nil {
		return usage(err)
	}
	warnings = slices.Concat(warnings, missingFolder(cfg), missingKeys(cfg))
	for _, w := range warnings {
		sh.say("heed: warning: %v", w)
	}
	for _, w := range sh.missingSecrets(cfg) {
		sh.say("heed: note: %v", w)
	}
	if c.Strict && len(warnings) > 0 {
		return usage(fmt.Errorf("%d warning(s) in %s, and --strict", len(warnings), name))
	}
	_, err = fmt.Fprintf(sh.out, "%s: ok, %d endpoint(s), %d warning(s)\n", name, len(cfg.Endpoints), len(warnings))
	return err
}

// missingFolder warns of a queue that has nowhere to be: heed up makes the file of
// queue.path, and no folder.
func missingFolder(cfg *config.Config) []config.Warning {
	q := cfg.Queue
	if q == nil || q.Store != config.QueueSQLite || q.Path == "" {
		return nil
	}
	dir := filepath.Dir(q.Path)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []config.Warning{cfg.Warn("queue.path", "make it, or name a file in one that exists: heed up does not start without",
		"there is no folder "+dir+" on this machine")}
}

// missingSecrets tells of environment variables that are not set here: without
// them heed up does not start. That is no warning, as it may run elsewhere.
func (sh *shell) missingSecrets(cfg *config.Config) (all []config.Warning) {
	for path, s := range cfg.Secrets() {
		if name, ok := s.Variable(); ok && sh.value(name) == "" {
			all = append(all, cfg.Warn(path, "set it where heed up runs, which does not start without",
				"the environment variable "+name+" is empty or not set here"))
		}
	}
	return all
}

// missingKeys warns of key files that are not there: without them heed up does
// not start. A file that only the gateway's user can look at may be.
func missingKeys(cfg *config.Config) (all []config.Warning) {
	if cfg.Queue == nil {
		return nil
	}
	for i, ref := range cfg.Queue.Keys {
		name, ok := strings.CutPrefix(ref.String(), "file:")
		if !ok {
			continue
		}
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			all = append(all, cfg.Warn(fmt.Sprintf("queue.keys[%d]", i),
				"make a first one with heed keys new -o "+name+", or restore it from a copy if the queue has calls",
				"there is no "+name+" on this machine"))
		}
	}
	return all
}

type configShow struct {
	configFile
	Fingerprints bool `help:"Get the secrets and print a fingerprint beside each reference."`
}

// Help is what heed config show --help says beside the flags.
func (configShow) Help() string {
	return `A fingerprint tells whether two processes hold the same secret. Whoever guesses a secret can check the guess with it, so publish none of a weak one.

Examples:

    heed config show
    heed config show deploy/heed.yaml --fingerprints`
}

// Run prints what is in force.
func (c *configShow) Run(sh *shell) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	cfg, err := load(name)
	if err != nil {
		return err
	}
	if q := cfg.Queue; q != nil && q.Store == config.QueueSQLite && q.Path == "" {
		q.Path = app.QueuePath(sh.value) // of whoever asks; a service has its own folder
	}
	text := config.Show(cfg)
	if c.Fingerprints {
		text = config.ShowResolved(cfg, sh.value, os.ReadFile)
	}
	_, err = sh.out.Write(text)
	return err
}

type configSchema struct{}

// Run prints the schema.
func (configSchema) Run(sh *shell) error {
	text := config.Schema()
	if len(text) == 0 {
		return errors.New("this build carries no schema")
	}
	_, err := sh.out.Write(text)
	return err
}
