package sim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"benchpeers/peers"
)

// heedWorld has the journal on, as always, a resource that was written, as long
// as the answer of go-httpbin, and a limit that counts every request and never
// refuses one.
var heedWorld = `limits: [{name: requests, kind: token_bucket, capacity: 1000000, refill: 1000000/s}]
begin:
  - {do: PUT ` + stubPath + `, body: {title: "` + strings.Repeat("x", 115) + `", author: "` + strings.Repeat("y", 115) + `"}}
`

// heedBinary is $HEED_BIN, or built once from the module that bench lies in.
var heedBinary = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("HEED_BIN"); bin != "" {
		return bin, nil
	}
	bin, err := filepath.Abs(filepath.Join(peers.Root(), "out", "heed"))
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
})

func init() {
	Register(Contestant{
		Name: "heed-sim", Version: "this tree", Path: stubPath,
		Setup: "heed sim: a resource that was written, as long as the answer of go-httpbin, a token bucket that counts every request, the journal of 10,000 on",
		Command: func(port, _ int, dir string) (*exec.Cmd, error) {
			bin, err := heedBinary()
			if err != nil {
				return nil, err
			}
			file, err := write(dir, "world.yaml", heedWorld)
			return exec.Command(bin, "sim", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--scenario", file), err
		},
	})
}
