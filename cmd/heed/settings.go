package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/sim"
)

// defaultFile is read where no --config is given.
const defaultFile = "heed.yaml"

// settings gets file by load. Where none is named and there is no heed.yaml it
// starts the demo API and returns settings that lead there. stop ends the demo.
func (sh *shell) settings(file string, load func(string) (*config.Config, error)) (cfg *config.Config, stop func(), err error) {
	stop = func() {}
	if file == "" {
		if _, err := os.Stat(defaultFile); errors.Is(err, fs.ErrNotExist) {
			return sh.demo()
		}
		file = defaultFile
	}
	cfg, err = load(file)
	return cfg, stop, err
}

// load reads file. Its warnings are for who starts it or checks it, not for
// everybody who uses it.
func load(file string) (*config.Config, error) {
	cfg, _, err := config.Load(file)
	if err != nil {
		return nil, usage(err)
	}
	return cfg, nil
}

// loadAloud reads file and tells its warnings.
func (sh *shell) loadAloud(file string) (*config.Config, error) {
	cfg, warnings, err := config.Load(file)
	if err != nil {
		return nil, usage(err)
	}
	for _, w := range warnings {
		sh.say("heed: warning: %v", w)
	}
	return cfg, nil
}

// demo serves the simulated API on a free port of loopback.
func (sh *shell) demo() (*config.Config, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	srv := &http.Server{Handler: sim.Demo(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // always ends with ErrServerClosed, or with the process
	}()
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		<-done
	}
	return config.Demo("http://" + l.Addr().String() + "/demo"), stop, nil
}
