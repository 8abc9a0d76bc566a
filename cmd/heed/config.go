package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/config"
)

type configCmd struct {
	Check  configCheck  `cmd:"" help:"Tell every problem of a heed.yaml, with line, column and remedy."`
	Show   configShow   `cmd:"" help:"Print the configuration in force: defaults filled in, secrets as references."`
	Schema configSchema `cmd:"" help:"Print the JSON Schema of heed.yaml, for editors."`
}

type configCheck struct {
	File   string `arg:"" optional:"" default:"heed.yaml" help:"The file to check."`
	Strict bool   `help:"Take warnings for problems."`
}

// Help is what heed config check --help says beside the flags.
func (configCheck) Help() string {
	return `Exits with 0 when the file can be used and with 2 when not. Warnings tell of settings that are valid and do not fit together.

Examples:

    heed config check
    heed config check deploy/heed.yaml --strict`
}

// Run checks the file.
func (c *configCheck) Run(sh *shell) error {
	cfg, warnings, err := config.Load(c.File)
	if err != nil {
		return usage(err)
	}
	for _, w := range warnings {
		sh.say("heed: warning: %v", w)
	}
	if c.Strict && len(warnings) > 0 {
		return usage(fmt.Errorf("%d warning(s) in %s, and --strict", len(warnings), c.File))
	}
	_, err = fmt.Fprintf(sh.out, "%s: ok, %d endpoint(s), %d warning(s)\n", c.File, len(cfg.Endpoints), len(warnings))
	return err
}

type configShow struct {
	File         string `arg:"" optional:"" default:"heed.yaml" help:"The file to show."`
	Fingerprints bool   `help:"Get the secrets and print a fingerprint beside each reference."`
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
	cfg, err := load(c.File)
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
