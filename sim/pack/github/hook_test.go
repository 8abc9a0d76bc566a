package github_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

// inbox keeps what hooks send.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	told   []string // the event and the action
	signed bool     // all of them, with the secret
}

func newInbox(t *testing.T, secret string, status int) *inbox {
	in := &inbox{signed: true}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.mu.Lock()
		defer in.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		var e struct{ Action string }
		if json.Unmarshal(body, &e) != nil {
			in.signed = false
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		in.signed = in.signed && r.Header.Get("X-Hub-Signature-256") == "sha256="+hex.EncodeToString(mac.Sum(nil))
		in.told = append(in.told, r.Header.Get("X-Github-Event")+" "+e.Action)
		w.WriteHeader(status)
	}))
	t.Cleanup(in.Close)
	return in
}

func TestAHookIsToldOfIssuesWithASignatureAndOnceEvenIfItFails(t *testing.T) {
	r := open(t, sim.World{})
	in := newInbox(t, "s3cret", 500)
	made := r.ask("POST", "/repos/octo/heed/hooks", `{"config":{"url":"`+in.URL+`","secret":"s3cret"},"events":["issues","issue_comment"]}`)
	r.ask("POST", issues, `{"title":"A leak"}`)
	r.Advance(time.Second)
	r.ask("POST", issues+"/66/comments", `{"body":"still"}`)
	r.Advance(time.Second)
	r.ask("PATCH", issues+"/66", `{"state":"closed"}`)
	r.Advance(24 * time.Hour)
	if diff := cmp.Diff(in.told, []string{"issues opened", "issue_comment created", "issues closed"}); diff != "" || !in.signed {
		t.Errorf("%s, signed: %v", diff, in.signed)
	}
	if made.Status != 201 || strings.Contains(made.Body, "s3cret") {
		t.Errorf("got %d %s", made.Status, made.Body)
	}
}

func TestAHookThatIsDeletedIsToldNothing(t *testing.T) {
	r := open(t, sim.World{})
	in := newInbox(t, "", 200)
	r.ask("POST", "/repos/octo/heed/hooks", `{"config":{"url":"`+in.URL+`"},"events":["*"]}`)
	var list []struct{ ID int }
	r.ask("GET", "/repos/octo/heed/hooks", "").Into(&list)
	gone := r.ask("DELETE", "/repos/octo/heed/hooks/1", "")
	r.ask("POST", issues, `{"title":"A leak"}`)
	r.Advance(time.Second)
	if len(list) != 1 || gone.Status != 204 || len(in.told) != 0 {
		t.Errorf("got %+v, %d, %v", list, gone.Status, in.told)
	}
}

func TestAHookNeedsAURL(t *testing.T) {
	r := open(t, sim.World{})
	if w := r.ask("POST", "/repos/octo/heed/hooks", `{"config":{"url":"nowhere"}}`); w.Status != 422 {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}
