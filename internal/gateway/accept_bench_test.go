package gateway

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// BenchmarkAccept hands calls of 1 KB over from 64 callers; each is on disk
// when its 202 is there.
func BenchmarkAccept(b *testing.B) {
	store, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "q.db"), Keys: queue.NewKeys(queue.NewKey())})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	g := New(Settings{
		Log:       slog.New(slog.DiscardHandler),
		Later:     &Later{Store: store, Bell: &queue.Bell{}, Wake: func() {}, Body: 1 << 20, Answer: 1 << 20, Window: time.Hour},
		Endpoints: []Endpoint{{Name: "api", URL: &url.URL{Scheme: "http", Host: "api.test"}, Transport: &heed.Transport{}}},
	})
	body := strings.Repeat("x", 1024)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := httptest.NewRequest("POST", "/api/x", strings.NewReader(body))
			r.Host = "127.0.0.1"
			r.Header["Prefer"] = []string{"respond-async"}
			w := httptest.NewRecorder()
			if g.ServeHTTP(w, r); w.Code != http.StatusAccepted {
				b.Errorf("got %d: %s", w.Code, w.Body)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
