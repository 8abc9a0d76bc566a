package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/config"
)

// grace is how long calls in flight may take when the process is told to end.
const grace = 25 * time.Second

type upCmd struct {
	Config string `placeholder:"FILE" help:"The configuration (heed.yaml; without one, the demo)."`
	Listen string `placeholder:"ADDR" help:"Where callers reach the gateway, instead of what the configuration says (127.0.0.1:8642)."`
	Admin  string `placeholder:"ADDR" help:"Where operators reach it, instead of what the configuration says (127.0.0.1:8643)."`
}

// Help is what heed up --help says beside the flags.
func (upCmd) Help() string {
	return `Callers send to http://ADDR/ENDPOINT/PATH what they would send to the endpoint's own URL. One JSON line per attempt and call goes to stdout, words for people to stderr.

SIGHUP reads the configuration again; calls in flight go on. SIGTERM and SIGINT end the process when the calls in flight have ended, a second one at once.

Examples:

    heed up
    curl http://127.0.0.1:8642/demo/hello
    heed up --config heed.yaml --listen 127.0.0.1:9000`
}

// Run serves until the context ends.
func (c *upCmd) Run(sh *shell) error {
	cfg, stop, err := sh.settings(c.Config, sh.loadAloud)
	if err != nil {
		return err
	}
	defer stop()
	c.place(cfg)
	a, err := app.New(cfg, sh.options())
	if err != nil {
		return usage(err)
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	if err := a.Start(sh.ctx); err != nil {
		return hintAtPort(err)
	}
	sh.greet(a, cfg)
	for {
		select {
		case <-hup:
			c.reload(sh, a, cfg.File)
		case <-sh.ctx.Done():
			sh.say("heed: ending; calls in flight have %s", grace)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(sh.ctx), grace)
			defer cancel()
			return a.Stop(ctx)
		}
	}
}

// place puts the addresses of the command line over those of the file.
func (c *upCmd) place(cfg *config.Config) {
	if c.Listen != "" {
		cfg.Listen.Data = c.Listen
	}
	if c.Admin != "" {
		cfg.Listen.Admin = c.Admin
	}
}

// reload reads the file again. What is wrong with it is told, and the process
// goes on with what it has.
func (c *upCmd) reload(sh *shell, a *app.App, file string) {
	if file == "" {
		sh.say("heed: the demo has no file to reload")
		return
	}
	cfg, err := sh.loadAloud(file)
	if err == nil {
		c.place(cfg)
		err = a.Reload(cfg)
	}
	if err != nil {
		a.NotReloaded(err)
		sh.say("heed: not reloaded, the old configuration stays in force: %s", told(err))
		return
	}
	sh.say("heed: reloaded %s", file)
}

// greet says where the process can be reached and what to try.
func (sh *shell) greet(a *app.App, cfg *config.Config) {
	sh.say("heed %s is up: callers %s, operators %s", versionOf(), a.DataAddr(), a.AdminAddr())
	if cfg.File == "" {
		sh.say(`
There is no %s here, so this is the demo: an API that answers every new path
with 503, then 429, and only then with 200. Your call gets through all the same:

    curl -i http://%s/demo/hello

See Heed-Attempts in the answer. Next: heed init writes a %[1]s to start from.`, defaultFile, a.DataAddr())
		if err := a.NoQueue(); err != nil {
			sh.say("\nIt has no queue, so that nothing is answered later: %s", told(err))
		}
		return
	}
	base := "http://" + a.DataAddr()
	if socket, is := strings.CutPrefix(a.DataAddr(), "unix:"); is {
		base = "curl --unix-socket " + socket + " http://localhost"
	}
	for _, e := range cfg.Endpoints {
		alone := ""
		if e.Auth.Kind == config.AuthNone { // or its 401 would look like the API's own
			alone = " (without auth: the caller's Authorization and Cookie are not passed on)"
		}
		sh.say("  %s/%s/ → %s%s", base, e.Name, e.URL.Redacted(), alone)
	}
}

// hintAtPort says what to do when an address is taken.
func hintAtPort(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return errors.Join(err, errors.New("another process listens there; choose other addresses with --listen and --admin, such as 127.0.0.1:0"))
	}
	return err
}
