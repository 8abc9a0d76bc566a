// Command heed makes calls to other people's HTTP APIs survive throttling,
// outages and misleading answers: as a gateway (heed up) or for one call
// (heed call).
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// net/http tells the standard logger of odd connections and quotes what
	// came over them, which may be part of an answer. What matters of it comes
	// back as an error anyhow.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// From the second signal on the process ends as usual: at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
