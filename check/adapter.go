package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Adapter is a client that runs already and is asked over HTTP:
//
//	GET  /health  answers with a Hello
//	POST /reset   takes a Setting: a case begins, and nothing is kept
//	POST /run     takes a Task, with the case in the field case; answers with an Outcome
//
// Cases run side by side unless its Hello says serial.
type Adapter struct {
	URL string
}

// Hello asks /health.
func (a Adapter) Hello(ctx context.Context) (h Hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	return h, a.ask(ctx, "GET /health", nil, &h)
}

// Open sends /reset.
func (a Adapter) Open(ctx context.Context, s Setting) (Session, error) {
	if err := a.ask(ctx, "POST /reset", s, nil); err != nil {
		return nil, err
	}
	return adapted{a, s.Case, s.APIKey}, nil
}

// plain follows nothing and goes through no proxy: it is no client under test.
var plain = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: atOnce, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// ask sends a request such as POST /run, and reads the answer into into.
func (a Adapter) ask(ctx context.Context, what string, send, into any) error {
	method, path := cut(what, " ")
	var body io.Reader
	if send != nil {
		text, err := json.Marshal(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.URL, "/")+path, body)
	if err != nil {
		return errors.New("the adapter has no usable URL; give one such as http://127.0.0.1:9000")
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := plain.Do(r)
	if err != nil {
		return fmt.Errorf("the adapter does not answer %s: %w", what, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLine))
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("the adapter answers %s with %d", what, resp.StatusCode)
	case into == nil:
		return nil
	}
	if json.Unmarshal(text, into) != nil {
		return fmt.Errorf("the adapter answers %s with what is no JSON object of the protocol", what)
	}
	return nil
}

// adapted is a session of an Adapter.
type adapted struct {
	to   Adapter
	name string
	key  string
}

// Do sends /run.
func (a adapted) Do(ctx context.Context, t Task) (o Outcome) {
	err := a.to.ask(ctx, "POST /run", struct {
		Task
		Case   string `json:"case"`
		APIKey string `json:"api_key"`
	}{t, a.name, a.key}, &o)
	switch {
	case err != nil && ctx.Err() != nil:
		return Outcome{Broken: context.Cause(ctx).Error()}
	case err != nil:
		return Outcome{Broken: "gave no outcome: " + err.Error()}
	case o.ID != "" && o.ID != t.ID:
		return Outcome{Broken: "answered for another operation"}
	}
	return o
}

// Close has nothing to end: the program is not ours.
func (adapted) Close() Output { return Output{} }
