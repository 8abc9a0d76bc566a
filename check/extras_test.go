package check_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed/check"
)

// bearer is the token of a session.
type bearer struct {
	mu    sync.Mutex
	token string
	busy  chan struct{} // closed when the renewal that goes on has ended
}

// in tells whether the task needs a token.
func (b *bearer) in(s check.Setting, t check.Task) bool {
	return s.TokenURL != "" && t.Header["Authorization"] == ""
}

func (b *bearer) drop(authorization string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if "Bearer "+b.token == authorization {
		b.token = ""
	}
}

// get returns the token, and renews it where there is none.
func (b *bearer) get(ctx context.Context, k *worker) (string, error) {
	for {
		b.mu.Lock()
		switch {
		case b.token != "" && !k.EachRenews:
			defer b.mu.Unlock()
			return b.token, nil
		case b.busy != nil && k.OneRenewal:
			busy := b.busy
			b.mu.Unlock()
			<-busy
			continue
		}
		busy := make(chan struct{})
		b.busy = busy
		b.mu.Unlock()
		token, err := renew(ctx, k)
		b.mu.Lock()
		b.token, b.busy = token, nil
		close(busy)
		b.mu.Unlock()
		return token, err
	}
}

func renew(ctx context.Context, k *worker) (string, error) {
	time.Sleep(time.Millisecond) // so that all who came at once are here
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.setting.TokenURL, strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("client", k.setting.APIKey)
	resp, err := k.http.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var made struct {
		Token string `json:"access_token"`
	}
	err = json.NewDecoder(resp.Body).Decode(&made)
	return made.Token, err
}

// receive listens for webhooks until the session ends.
func (k *worker) receive(ctx context.Context, t check.Task) check.Outcome {
	l, err := k.memory.Listen("")
	if err != nil {
		return check.Outcome{ID: t.ID, Error: err.Error()}
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if k.Verify && !signed(r.Header, body, t.Secret) || k.Fresh && old(r.Header) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		id := r.Header.Get("Webhook-Id")
		mu.Lock()
		again := seen[id] && k.Once
		seen[id] = true
		mu.Unlock()
		if again {
			w.WriteHeader(k.Doubled)
			return
		}
		k.call(ctx, check.Task{ID: id, Method: http.MethodPost, URL: t.URL + "/" + id, Header: t.Header})
		w.WriteHeader(http.StatusNoContent)
	})}
	go srv.Serve(l)
	context.AfterFunc(ctx, func() { srv.Close() })
	return check.Outcome{ID: t.ID, OK: true, URL: "http://" + l.Addr().String() + "/hook"}
}

// signed checks the signature of Standard Webhooks.
func signed(h http.Header, body []byte, secret string) bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "." + string(body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(want), []byte(h.Get("Webhook-Signature")))
}

func old(h http.Header) bool {
	at, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	return err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute
}
