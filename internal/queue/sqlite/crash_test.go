package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HEED_QUEUE_VICTIM"); dir != "" {
		if err := victim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// victim enqueues and sends calls until it is killed. It prints the ids of
// those that were acknowledged; what it sends is a line in a file.
func victim(dir string) error {
	s, err := reopen(dir)
	if err != nil {
		return err
	}
	sent, err := os.OpenFile(filepath.Join(dir, "sent"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := worker(s, sent)
	w.Start(context.Background())
	var out sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				c := get("")
				c.Gate, c.Repeatable = fmt.Sprint("k", n%4), n%2 == 0
				r, err := s.Enqueue(context.Background(), time.Now(), []queue.Call{c})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				w.Wake()
				out.Lock()
				fmt.Println(r[0].ID)
				out.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

// worker sends a call by writing its id down.
func worker(s *sqlite.Store, sent *os.File) *queue.Worker {
	return &queue.Worker{Feed: s, Begins: true, Share: 16, Send: func(ctx context.Context, c queue.Call) queue.Outcome {
		if queue.Begin(ctx) != nil {
			return queue.Outcome{State: queue.Queued, Reason: queue.ReasonHandedBack}
		}
		fmt.Fprintln(sent, c.ID)
		return queue.Outcome{State: queue.Done, Answer: &queue.Result{Status: 200}}
	}}
}

// reopen opens the store of a folder with the key that lies in it. What a
// process has written outlives it without the disk; only the machine's end
// would take it away.
func reopen(dir string) (*sqlite.Store, error) {
	f, err := os.Open(filepath.Join(dir, "key"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	keys, err := queue.ReadKeys(f)
	if err != nil {
		return nil, err
	}
	return sqlite.Open(context.Background(), sqlite.Few(sqlite.Unsynced(sqlite.Options{Path: filepath.Join(dir, "queue.db"), Keys: keys})))
}

// kill runs the victim until it has acknowledged n calls, kills it, and
// returns what it acknowledged.
func kill(t *testing.T, dir string, n int) []string {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "HEED_QUEUE_VICTIM="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if acknowledged = append(acknowledged, lines.Text()); len(acknowledged) == n {
			c.Process.Kill()
		}
	}
	c.Wait()
	if len(acknowledged) < n {
		t.Fatalf("acknowledged before it ended: got %d calls, want %d", len(acknowledged), n)
	}
	// The last line may be cut short.
	return acknowledged[:len(acknowledged)-1]
}

func TestAKilledProcessLosesNothingAndSendsNoWriteTwice(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(queue.NewKey().Reveal()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var acknowledged []string
	for range 4 {
		acknowledged = append(acknowledged, kill(t, dir, 50+rng.IntN(200))...)
	}
	s, err := reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	finish(t, s, dir)
	times := sentTimes(t, dir)
	unknown := 0
	for _, id := range acknowledged {
		f, err := s.Get(t.Context(), id)
		switch {
		case err != nil:
			t.Errorf("an acknowledged call: %v", err)
		case f.State == queue.Unknown && !f.Repeatable:
			unknown++
		case f.State != queue.Done || times[id] == 0:
			t.Errorf("call %s: got %s, sent %d times, want done and sent", id, f.State, times[id])
		}
		if !f.Repeatable && times[id] > 1 {
			t.Errorf("write %s: sent %d times, in state %s", id, times[id], f.State)
		}
	}
	t.Logf("%d acknowledged, %d writes unknown", len(acknowledged), unknown)
}

// finish sends what the killed processes left.
func finish(t *testing.T, s *sqlite.Store, dir string) {
	t.Helper()
	sent, err := os.OpenFile(filepath.Join(dir, "sent"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer sent.Close()
	w := worker(s, sent)
	settled := make(chan int, 1<<16)
	w.Settled = func(all []queue.Settlement) { settled <- len(all) }
	w.Start(t.Context())
	defer w.Stop()
	for live(t, s) > 0 {
		<-settled
	}
}

func live(t *testing.T, s *sqlite.Store) (n int) {
	t.Helper()
	counts, err := s.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		if !c.State.Ended() {
			n += c.N
		}
	}
	return n
}

func sentTimes(t *testing.T, dir string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "sent"))
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for id := range strings.FieldsSeq(string(b)) {
		times[id]++
	}
	return times
}
