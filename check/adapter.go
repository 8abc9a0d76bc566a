package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	ctx, cancel := context.WithTimeout(ctx, helloTimeout) // the time of the case begins after it
	defer cancel()
	if err := a.ask(ctx, "POST /reset", s, nil); err != nil {
		return nil, err
	}
	return &adapted{to: a, name: s.Case, key: s.APIKey}, nil
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
	switch err := parsed(text, into); {
	case errors.Is(err, errStray):
		return protocolError("the adapter answers " + what + " with what is no JSON object of the protocol")
	case err != nil:
		return protocolError("in the answer to " + what + " " + err.Error())
	}
	return nil
}

// protocolError is an answer that is not as the protocol has it.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// adapted is a session of an Adapter.
type adapted struct {
	to   Adapter
	name string
	key  string

	mu    sync.Mutex
	fault string
}

// Do sends /run.
func (a *adapted) Do(ctx context.Context, t Task) Outcome {
	var r reply
	err := a.to.ask(ctx, "POST /run", struct {
		Task
		Case   string `json:"case"`
		APIKey string `json:"api_key"`
	}{t, a.name, a.key}, &r)
	switch {
	case err != nil:
	case r.OK == nil:
		err = protocolError("in the answer to POST /run ok is missing; it must be true or false")
	case r.ID != nil && *r.ID != t.ID:
		err = protocolError(fmt.Sprintf("POST /run for id %q was answered for id %q", t.ID, plainly(*r.ID, 80)))
	default:
		return r.outcome()
	}
	if ctx.Err() != nil {
		return Outcome{Broken: context.Cause(ctx).Error()}
	}
	if wrong, ok := errors.AsType[protocolError](err); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.fault = cmp.Or(a.fault, wrong.Error())
	}
	return Outcome{Broken: "gave no outcome: " + err.Error()}
}

// Close has nothing to end: the program is not ours.
func (a *adapted) Close() Output {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Output{Fault: a.fault}
}
