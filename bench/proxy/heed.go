package proxy

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"benchpeers/peers"
	"benchpeers/proc"
)

// heedConfig has everything on, at limits that never bind.
const heedConfig = `version: 1
listen: {data: "%s", admin: "127.0.0.1:%d"}
log: {attempts: %[3]s, calls: %[3]s}
endpoints:
  b:
    url: http://%[4]s
    networks: [127.0.0.0/8]
    limits: {rate: 1000000/s, burst: 10000, concurrency: 4096}
`

// heedBinary is $HEED_BIN, or built from the module that bench lies in.
func heedBinary(dir string) (string, error) {
	if bin := os.Getenv("HEED_BIN"); bin != "" {
		return bin, nil
	}
	bin, err := filepath.Abs(filepath.Join(dir, "heed"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", bin, "./cmd/heed")
	build.Dir = filepath.Join(peers.Root(), "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building heed: %w: %.2000s", err, out)
	}
	return bin, nil
}

// heedUp starts the gateway; lines says which attempts and calls get a log line.
func heedUp(lines string) func(listen, backend, dir string) (*exec.Cmd, error) {
	return func(listen, backend, dir string) (*exec.Cmd, error) {
		bin, err := heedBinary(dir)
		if err != nil {
			return nil, err
		}
		port, err := proc.FreePort()
		if err != nil {
			return nil, err
		}
		conf, err := write(dir, "heed.yaml", heedConfig, listen, port, lines, backend)
		return exec.Command(bin, "up", "--config", conf), err
	}
}

func init() {
	const on = "heed up with retry, breaker, pace, concurrency, retry budget, masking and metrics; "
	Register(
		Contestant{Name: "heed", Path: "/b/", Setup: on + "a log line per retried call only, as the others log none", Command: heedUp("retried")},
		Contestant{Name: "heed-lines", Path: "/b/", Setup: on + "a log line per attempt and one per call", Command: heedUp("all")},
	)
}

// WithHeed runs f with a heed gateway in front of backend. base is the URL of
// the backend through it, pid its process.
func WithHeed(ctx context.Context, backend string, f func(ctx context.Context, base string, pid int) error) error {
	dir, err := os.MkdirTemp("", "bench-heed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	port, err := proc.FreePort()
	if err != nil {
		return err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	cmd, err := heedUp("retried")(addr, backend, dir)
	if err != nil {
		return err
	}
	p, err := proc.Start(cmd)
	if err != nil {
		return err
	}
	defer p.Stop()
	base := "http://" + addr + "/b"
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := p.Ready(wait, func() (*http.Request, error) {
		return http.NewRequestWithContext(wait, http.MethodGet, base+"/", nil)
	}); err != nil {
		return err
	}
	return f(ctx, base, p.PID())
}
