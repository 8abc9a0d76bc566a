package sim_test

import (
	"encoding/json"
	"fmt"
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

// inbox is a receiver that answers as told and keeps what came.
type inbox struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int
	got     []posted
}

type posted struct {
	header http.Header
	body   string
}

func newInbox(t *testing.T, answers ...int) *inbox {
	in := &inbox{answers: answers}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.mu.Lock()
		defer in.mu.Unlock()
		in.got = append(in.got, posted{r.Header, string(body)})
		if len(in.answers) > 0 {
			w.WriteHeader(in.answers[0])
			in.answers = in.answers[1:]
		}
	}))
	t.Cleanup(in.Close)
	return in
}

// names returns a field of what came, in the order of arrival.
func (in *inbox) field(name string) []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var all []string
	for _, p := range in.got {
		all = append(all, p.header.Get(name))
	}
	return all
}

// amounts returns the amounts of the charges that were told of.
func (in *inbox) amounts(t *testing.T) []int {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	var all []int
	for _, p := range in.got {
		var e struct{ Data struct{ Amount int } }
		if err := json.Unmarshal([]byte(p.body), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Data.Amount)
	}
	return all
}

const start = "2026-03-01T12:00:00Z"

// shop is a world on a clock that stands still, whose events go to in.
func shop(t *testing.T, in *inbox, steps string) *sim.API {
	t.Helper()
	at, err := time.Parse(time.RFC3339, start)
	if err != nil {
		t.Fatal(err)
	}
	return api(t, sim.World{
		Steps: steps, Clock: sim.Clock{Stepped: true, Start: at},
		Webhooks: []sim.Webhook{{URL: in.URL + "/hook?token=t", Secret: "whsec_c2VjcmV0"}},
	})
}

func pay(a *sim.API, amounts ...int) {
	for _, n := range amounts {
		ask(a, "POST", "/v1/charges", fmt.Sprintf(`{"amount":%d,"currency":"eur"}`, n))
	}
}

func TestAWebhookComesAfterItsDelayOnTheClockOfTheCase(t *testing.T) {
	in := newInbox(t)
	a := shop(t, in, "")
	pay(a, 5)
	a.Case("").Advance(time.Second - 1)
	if got := in.amounts(t); got != nil {
		t.Errorf("before the delay came %v", got)
	}
	a.Case("").Advance(1)
	if diff := cmp.Diff(in.amounts(t), []int{5}); diff != "" {
		t.Error(diff)
	}
}

func TestAReceiverThatFailsIsToldAgainWithTheSameIDUntilItTakesIt(t *testing.T) {
	in := newInbox(t, 500, 503)
	a := shop(t, in, "")
	pay(a, 5)
	a.Case("").Advance(time.Second + 5*time.Second + 5*time.Minute)
	ids := in.field("Webhook-Id")
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[2] {
		t.Errorf("got ids %q", ids)
	}
	var got []string
	for _, d := range a.Journal().Webhooks {
		got = append(got, fmt.Sprintln(d.Seq, d.Time.Format("15:04:05"), d.Attempt, d.Status, d.Outcome, strings.TrimPrefix(d.URL, in.URL)))
	}
	want := []string{"1 12:00:01 1 500 failed /hook\n", "2 12:00:06 2 503 failed /hook\n", "3 12:05:06 3 200 delivered /hook\n"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestAProviderGivesUp(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []int
		retries []time.Duration
		want    []string
	}{
		"after its last attempt":       {[]int{500, 500, 500}, []time.Duration{time.Minute}, []string{"failed", "gave_up"}},
		"on a receiver that is gone":   {[]int{410}, nil, []string{"gave_up"}},
		"at once if it never repeats":  {[]int{500}, []time.Duration{}, []string{"gave_up"}},
		"not on one that takes it yet": {[]int{500, 204}, []time.Duration{time.Hour}, []string{"failed", "delivered"}},
	} {
		in := newInbox(t, tt.answers...)
		p := sim.Generic()
		p.Webhooks.Retries = tt.retries
		a := api(t, sim.World{Packs: []sim.Pack{p}, Clock: sim.Clock{Stepped: true}, Webhooks: []sim.Webhook{{URL: in.URL}}})
		pay(a, 5)
		a.Case("").Advance(48 * time.Hour)
		var got []string
		for _, d := range a.Journal().Webhooks {
			got = append(got, d.Outcome)
		}
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAReceiverThatCannotBeReachedIsToldAgain(t *testing.T) {
	in := newInbox(t)
	a := shop(t, in, "")
	in.Close()
	pay(a, 5)
	a.Case("").Advance(6 * time.Second)
	all := a.Journal().Webhooks
	if len(all) != 2 || all[1].Attempt != 2 || all[1].Status != 0 || all[1].Error != "the receiver could not be reached" {
		t.Errorf("got %+v", all)
	}
}

func TestStepsDisturbWebhooks(t *testing.T) {
	for steps, want := range map[string][]int{
		"webhook *: ok":                          {1, 2, 3},
		"webhook charge.*: lost":                 {2, 3},
		"webhook *: ok, lost x2":                 {1},
		"webhook *.succeeded: twice":             {1, 1, 2, 3},
		"webhook *: twice(after=5s)":             {1, 2, 3, 1},
		"webhook charge.succeeded: late(for=1m)": {2, 3, 1},
		"webhook *: reorder":                     {2, 3, 1},
		"webhook *: ok x2, reorder(for=5m)":      {1, 2, 3},
		"webhook job.complete: lost":             {1, 2, 3},
	} {
		in := newInbox(t)
		a := shop(t, in, steps)
		pay(a, 1, 2, 3)
		a.Case("").Advance(10 * time.Minute)
		if diff := cmp.Diff(in.amounts(t), want); diff != "" {
			t.Errorf("%s: %s", steps, diff)
		}
	}
}

func TestAWebhookThatIsLostIsInTheJournal(t *testing.T) {
	in := newInbox(t)
	a := shop(t, in, "webhook *: lost")
	pay(a, 1)
	all := a.Journal().Webhooks
	if len(all) != 1 || all[0].Outcome != "lost" || all[0].Step != "lost" {
		t.Errorf("got %+v", all)
	}
}

func TestASignatureIsStaleOrForgedAsTold(t *testing.T) {
	in := newInbox(t)
	a := shop(t, in, "webhook *: ok, stale(age=1h), forged")
	pay(a, 1, 1, 1)
	a.Case("").Advance(time.Second)
	at := in.field("Webhook-Timestamp")
	if diff := cmp.Diff(at, []string{"1772366401", "1772362801", "1772366401"}); diff != "" {
		t.Error(diff)
	}
	signed, ids := in.field("Webhook-Signature"), in.field("Webhook-Id")
	for i, want := range []bool{true, true, false} {
		right := sim.SignStandard(sim.Message{ID: ids[i], Body: []byte(in.got[i].body), Secret: "whsec_c2VjcmV0", Time: unix(t, at[i])})
		if got := signed[i] == right[2][1]; got != want {
			t.Errorf("message %d is signed with the secret: %v", i+1, got)
		}
	}
}

func TestOnlyEventsThatAreWantedAreSent(t *testing.T) {
	in := newInbox(t)
	a := api(t, sim.World{Clock: sim.Clock{Stepped: true}, Webhooks: []sim.Webhook{{URL: in.URL, Events: []string{"job.*"}}}})
	pay(a, 1)
	ask(a, "POST", "/v1/jobs", "")
	a.Case("").Advance(time.Minute)
	if len(in.got) != 1 || !strings.Contains(in.got[0].body, `"type":"job.complete"`) {
		t.Errorf("got %v", in.got)
	}
}

func TestAWebhookIsRegisteredOverHTTPForItsCaseAlone(t *testing.T) {
	in := newInbox(t)
	a := api(t, sim.World{Clock: sim.Clock{Stepped: true}})
	w := ask(a, "POST", "/t/one/_sim/webhooks", `{"url":"`+in.URL+`","events":["charge.*"],"delay":"3s"}`)
	var made struct{ ID, Secret string }
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != 201 || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/t/one/v1/charges", "/t/two/v1/charges"} {
		ask(a, "POST", path, coffee)
	}
	ask(a, "POST", "/t/two/_sim/clock", `{"advance":"3s"}`)
	ask(a, "POST", "/t/one/_sim/clock", `{"advance":"3s"}`)
	if len(in.got) != 1 {
		t.Errorf("got %d messages", len(in.got))
	}
	if list := ask(a, "GET", "/t/one/_sim/webhooks", "").Body.String(); strings.Contains(list, made.Secret) || !strings.Contains(list, made.ID) {
		t.Errorf("the list is %s", list)
	}
	var got []int
	for range 2 {
		got = append(got, ask(a, "DELETE", "/t/one/_sim/webhooks/"+made.ID, "").Code)
	}
	if diff := cmp.Diff(got, []int{204, 404}); diff != "" {
		t.Error(diff)
	}
}

func TestABadWebhookIsRefusedAndNothingIsRegistered(t *testing.T) {
	a := api(t, sim.World{})
	for _, body := range []string{``, `{}`, `{"url":"nowhere"}`, `{"url":"ftp://h/"}`, `{"url":"http://h/","delay":"soon"}`,
		`{"url":"http://h/","delay":"-1s"}`, `{"url":"http://h/","pack":"strype"}`, `{"url":"http://h/","evnts":[]}`, `{"url":"http://h/"} x`} {
		if w := ask(a, "POST", "/_sim/webhooks", body); w.Code != 400 {
			t.Errorf("%s: got %d", body, w.Code)
		}
	}
	if got := a.Case("").Webhooks(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if _, err := sim.New(sim.World{Webhooks: []sim.Webhook{{URL: "nowhere"}}}); err == nil {
		t.Error("a world takes it")
	}
}

func TestAWebhookOfARunningClockIsSentBesideTheRequests(t *testing.T) {
	came := make(chan string)
	in := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came <- r.Header.Get("Webhook-Id") }))
	defer in.Close()
	a := api(t, sim.World{Clock: sim.Clock{Scale: 1000}, Webhooks: []sim.Webhook{{URL: in.URL}}})
	defer a.Close()
	pay(a, 1)
	if id := <-came; id == "" {
		t.Error("the message has no id")
	}
}

func TestAResetForgetsMessagesOnTheirWay(t *testing.T) {
	in := newInbox(t)
	a := shop(t, in, "")
	pay(a, 1)
	a.Reset()
	a.Case("").Advance(time.Hour)
	if len(in.got) != 0 {
		t.Errorf("got %v", in.got)
	}
	pay(a, 2)
	a.Case("").Advance(time.Hour)
	if diff := cmp.Diff(in.amounts(t), []int{2}); diff != "" {
		t.Error("afterwards: " + diff)
	}
}

func TestAReceiverMayAskTheSimulatorWhileItIsTold(t *testing.T) {
	var a *sim.API
	asked := 0
	in := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = ask(a, "GET", "/v1/bibs/1", "").Code }))
	defer in.Close()
	a = api(t, sim.World{Clock: sim.Clock{Stepped: true}, Webhooks: []sim.Webhook{{URL: in.URL}}})
	pay(a, 1)
	a.Case("").Advance(time.Second)
	if asked != 200 {
		t.Errorf("got %d", asked)
	}
}

// subscribing is a pack whose users register webhooks by an operation.
func subscribing() sim.Pack {
	return sim.Pack{
		Name: "subscribing", Webhooks: sim.Webhooks{Sign: sim.SignGitHub},
		Operations: []sim.Operation{
			{Route: "POST /hooks", Do: func(x *sim.Exchange) sim.Answer {
				id, _, err := x.Subscribe(sim.Webhook{URL: x.Query("url"), Secret: "s"})
				if err != nil {
					return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: err.Error()})
				}
				return sim.JSON(201, id)
			}},
			{Route: "DELETE /hooks/{id}", Do: func(x *sim.Exchange) sim.Answer { return sim.JSON(200, x.Unsubscribe(x.Value("id"))) }},
			{Route: "POST /push", Do: func(x *sim.Exchange) sim.Answer {
				x.Emit(sim.Event{Type: "push", Body: []byte("{}")})
				return sim.JSON(200, nil)
			}},
		},
	}
}

func TestAnOperationRegistersAWebhookUntilItIsTakenBackOrTheCaseIsReset(t *testing.T) {
	in := newInbox(t)
	a := api(t, sim.World{Packs: []sim.Pack{subscribing()}, Clock: sim.Clock{Stepped: true}})
	push := func() int {
		ask(a, "POST", "/push", "")
		a.Case("").Advance(time.Minute)
		return len(in.got)
	}
	got := []int{ask(a, "POST", "/hooks?url=nowhere", "").Code, ask(a, "POST", "/hooks?url="+in.URL, "").Code, push()}
	ask(a, "DELETE", "/hooks/wh_1", "")
	got = append(got, push())
	ask(a, "POST", "/hooks?url="+in.URL, "")
	a.Reset()
	got = append(got, push())
	if diff := cmp.Diff(got, []int{400, 201, 1, 1, 1}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(in.field("X-Github-Event"), []string{"push"}); diff != "" {
		t.Error(diff)
	}
}
