package gcs_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/heedproject/heed/sim"
)

// trial plans failures for one method and returns the header that meets them.
func trial(t *testing.T, a *sim.API, method string, instructions ...string) string {
	t.Helper()
	list := `["` + strings.Join(instructions, `", "`) + `"]`
	w := want(t, send(a, "POST", "/retry_test", `{"instructions": {"`+method+`": `+list+`}, "transport": "HTTP"}`), 200)
	return "X-Retry-Test-Id: " + field(t, w, "id")
}

// completed tells whether all instructions were used up.
func completed(t *testing.T, a *sim.API, header string) bool {
	t.Helper()
	_, id, _ := strings.Cut(header, ": ")
	var one struct{ Completed bool }
	decode(t, want(t, send(a, "GET", "/retry_test/"+id, ""), 200), &one)
	return one.Completed
}

func TestInstructionsAreUsedUpInOrder(t *testing.T) {
	a := storage(t)
	h := trial(t, a, "storage.buckets.get", "return-503", "return-429")
	var got []int
	for _, left := range []bool{true, true, false} {
		same(t, completed(t, a, h), !left)
		got = append(got, send(a, "GET", root+"/attic", "", h).Code)
	}
	same(t, got, []int{503, 429, 200})
}

func TestInstructionsAreForTheirMethodAndTheirClientOnly(t *testing.T) {
	a := storage(t)
	h := trial(t, a, "storage.buckets.get", "return-503")
	want(t, send(a, "GET", root+"/attic", ""), 200)
	want(t, send(a, "GET", root+"?project=p", "", h), 200)
	want(t, send(a, "GET", root+"/attic", "", "X-Retry-Test-Id: unknown"), 200)
	want(t, send(a, "GET", root+"/attic", "", h), 503)
}

func TestTheJournalTellsTheStepThatWasPlanned(t *testing.T) {
	a := storage(t)
	h := trial(t, a, "storage.buckets.get", "return-503")
	send(a, "GET", root+"/attic", "", h)
	entries := a.Journal().Entries
	last := entries[len(entries)-1]
	same(t, fmt.Sprint(last.Operation, " ", last.Step, " ", last.Status), "storage.buckets.get 503 503")
}

func TestTheStepsOfTheCaseComeBeforeAnInstruction(t *testing.T) {
	a := storage(t)
	if err := a.SetSteps("storage.buckets.get: 500"); err != nil {
		t.Fatal(err)
	}
	h := trial(t, a, "storage.buckets.get", "return-503")
	same(t, send(a, "GET", root+"/attic", "", h).Code, 500)
	same(t, send(a, "GET", root+"/attic", "", h).Code, 503)
}

func TestWhatIsNotUnderstoodIsNotImplemented(t *testing.T) {
	a := storage(t)
	for _, body := range []string{
		`{"instructions": {"storage.buckets.get": ["redirect-send-token-abc"]}}`,
		`{"instructions": {"storage.buckets.get": ["return-503", "return-600"]}}`,
		`{"instructions": {"storage.folders.get": ["return-503"]}}`,
		`{"instructions": {"storage.buckets.get": ["return-503"]}, "transport": "GRPC"}`,
	} {
		same(t, reason(t, send(a, "POST", "/retry_test", body)), "501 notImplemented")
	}
	same(t, reason(t, send(a, "POST", "/retry_test", `{}`)), "400 invalid")
	same(t, strings.TrimSpace(send(a, "GET", "/retry_tests", "").Body.String()), `{"retry_test":[]}`)
}

func TestADeletedRetryTestPlansNothing(t *testing.T) {
	a := storage(t)
	h := trial(t, a, "storage.buckets.get", "return-503")
	_, id, _ := strings.Cut(h, ": ")
	want(t, send(a, "DELETE", "/retry_test/"+id, ""), 200)
	want(t, send(a, "GET", root+"/attic", "", h), 200)
	want(t, send(a, "GET", "/retry_test/"+id, ""), 404)
}

func TestAFailureAfterSoManyBytesKeepsWhatCameBefore(t *testing.T) {
	a := storage(t)
	h := trial(t, a, "storage.objects.insert", "return-503-after-512K")
	path := session(t, a, "")
	chunk := func(from, to int, total string) int {
		return send(a, "PUT", path, text[from:to], fmt.Sprintf("Content-Range: bytes %d-%d/%s", from, to-1, total), h).Code
	}
	same(t, chunk(0, piece, "*"), 308)
	same(t, completed(t, a, h), false)
	same(t, chunk(piece, 3*piece, fmt.Sprint(3*piece)), 503)
	w := send(a, "PUT", path, "", "Content-Range: bytes */*", h)
	same(t, w.Header().Get("Range"), fmt.Sprintf("bytes=0-%d", 2*piece-1))
	same(t, chunk(2*piece, 3*piece, fmt.Sprint(3*piece)), 200)
	same(t, send(a, "GET", "/attic/box", "").Body.String() == text, true)
}

func TestAFailureAfterSoManyBytesKeepsNothingOfAnUploadInOnePiece(t *testing.T) {
	a := storage(t)
	h := trial(t, a, "storage.objects.insert", "return-503-after-1K")
	want(t, send(a, "POST", upload+"?uploadType=media&name=small", "x", h), 200)
	want(t, send(a, "POST", upload+"?uploadType=media&name=large", text, h), 503)
	want(t, send(a, "GET", "/attic/large", ""), 404)
}

func TestTheLastAnswerOfAnUploadIsCutShort(t *testing.T) {
	a := storage(t)
	h := trial(t, a, "storage.objects.insert", "return-broken-stream-final-chunk-after-10B")
	path := session(t, a, "")
	want(t, send(a, "PUT", path, text[:piece], "Content-Range: bytes 0-262143/*", h), 308)
	w := want(t, send(a, "PUT", path, text[piece:], fmt.Sprintf("Content-Range: bytes %d-%d/%d", piece, len(text)-1, len(text)), h), 200)
	same(t, w.Body.Len(), 10)
	want(t, send(a, "GET", "/attic/box", ""), 200)
}

// get fetches the object box over a real connection of its own.
func get(t *testing.T, url string, header ...string) (body []byte, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/attic/box", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func TestAConnectionIsReset(t *testing.T) {
	a := storage(t)
	put(t, a, "box", text)
	server := httptest.NewServer(a)
	defer server.Close()
	h := trial(t, a, "storage.objects.get", "return-reset-connection")
	if _, err := get(t, server.URL, h); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got error %v, want a connection reset by peer", err)
	}
}

func TestABrokenStreamIsTakenUpWhereItBroke(t *testing.T) {
	a := storage(t)
	put(t, a, "box", text)
	server := httptest.NewServer(a)
	defer server.Close()
	h := trial(t, a, "storage.objects.get", "return-broken-stream", "return-broken-stream-after-256K")
	var all []byte
	for _, ends := range []int{4, 4 + piece, len(text)} {
		part, err := get(t, server.URL, h, fmt.Sprintf("Range: bytes=%d-", len(all)))
		if broken := ends < len(text); broken != errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got error %v after %d bytes", err, len(all)+len(part))
		}
		all = append(all, part...)
		same(t, len(all), ends)
	}
	same(t, string(all) == text, true)
}

func TestAStreamTooShortToBreakThereIsLeftAlone(t *testing.T) {
	a := storage(t)
	put(t, a, "box", "hello")
	h := trial(t, a, "storage.objects.get", "return-broken-stream-after-256K")
	want(t, send(a, "GET", "/attic/box", "", h), 200)
	want(t, send(a, "GET", root+"/attic/o/box", "", h), 200)
	same(t, completed(t, a, h), false)
}
