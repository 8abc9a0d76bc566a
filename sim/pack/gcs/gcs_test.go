package gcs_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/gcs"
)

const (
	root   = "/storage/v1/b"
	upload = "/upload/storage/v1/b/attic/o"
)

// storage is a Google Storage on a clock that stands still, with the bucket
// attic in it.
func storage(t *testing.T) *sim.API {
	t.Helper()
	w := sim.World{Packs: []sim.Pack{gcs.Pack()}}
	w.Clock.Stepped = true
	a, err := sim.New(w)
	if err != nil {
		t.Fatal(err)
	}
	want(t, send(a, "POST", root+"?project=p", `{"name": "attic"}`), 200)
	return a
}

func send(a *sim.API, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// put uploads an object in one piece.
func put(t *testing.T, a *sim.API, name, contents string) *httptest.ResponseRecorder {
	t.Helper()
	return want(t, send(a, "POST", upload+"?uploadType=media&name="+name, contents, "Content-Type: text/plain"), 200)
}

func want(t *testing.T, w *httptest.ResponseRecorder, status int) *httptest.ResponseRecorder {
	t.Helper()
	if w.Code != status {
		t.Fatalf("got status %d, want %d: %s", w.Code, status, w.Body)
	}
	return w
}

// reason is the status and the first reason of an error in JSON.
func reason(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct {
		Error struct {
			Code   int
			Errors []struct{ Reason string }
		}
	}
	decode(t, w, &body)
	if len(body.Error.Errors) != 1 || body.Error.Code != w.Code {
		t.Fatalf("got %d %s, want one error with the status as its code", w.Code, w.Body)
	}
	return w.Result().Status[:3] + " " + body.Error.Errors[0].Reason
}

func decode(t *testing.T, w *httptest.ResponseRecorder, v any) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
}

// field is one field of a resource, "" if it is not there.
func field(t *testing.T, w *httptest.ResponseRecorder, name string) string {
	t.Helper()
	var r map[string]any
	decode(t, w, &r)
	text, _ := r[name].(string)
	return text
}

// names lists what stands in one field of the items of a list.
func names(t *testing.T, w *httptest.ResponseRecorder, name string) []string {
	t.Helper()
	var list struct{ Items []map[string]any }
	decode(t, w, &list)
	found := []string{}
	for _, item := range list.Items {
		text, _ := item[name].(string)
		found = append(found, text)
	}
	return found
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +: %s", diff)
	}
}

func TestABucketThatWasMadeIsThere(t *testing.T) {
	a := storage(t)
	w := want(t, send(a, "GET", root+"/attic", ""), 200)
	same(t, field(t, w, "metageneration")+" "+field(t, w, "storageClass")+" "+field(t, w, "location"), "1 STANDARD US")
	same(t, names(t, send(a, "GET", root+"?project=p", ""), "name"), []string{"attic"})
	same(t, names(t, send(a, "GET", root+"?project=other", ""), "name"), []string{})
}

func TestABucketIsMadeOnce(t *testing.T) {
	a := storage(t)
	same(t, reason(t, send(a, "POST", root+"?project=p", `{"name": "attic"}`)), "409 conflict")
}

func TestABucketNeedsANameAndAProject(t *testing.T) {
	a := storage(t)
	for _, try := range []struct{ query, body string }{
		{"", `{"name": "cellar"}`}, {"?project=p", `{}`}, {"?project=p", `{"name": "Cellar"}`}, {"?project=p", `{"name": "a"}`},
		{"?project=p", `{"name": "-cellar"}`}, {"?project=p", `{"name": 7}`}, {"?project=p", `nonsense`},
	} {
		same(t, reason(t, send(a, "POST", root+try.query, try.body)), "400 invalid")
	}
	same(t, names(t, send(a, "GET", root+"?project=p", ""), "name"), []string{"attic"})
}

func TestABucketThatHoldsSomethingStays(t *testing.T) {
	a := storage(t)
	put(t, a, "box", "things")
	same(t, reason(t, send(a, "DELETE", root+"/attic", "")), "409 conflict")
	want(t, send(a, "DELETE", root+"/attic/o/box", ""), 204)
	want(t, send(a, "DELETE", root+"/attic", ""), 204)
	same(t, reason(t, send(a, "GET", root+"/attic", "")), "404 notFound")
}

func TestAPatchKeepsWhatItDoesNotName(t *testing.T) {
	a := storage(t)
	want(t, send(a, "PATCH", root+"/attic", `{"labels": {"floor": "3", "side": "north"}, "storageClass": "ARCHIVE"}`), 200)
	w := want(t, send(a, "PATCH", root+"/attic", `{"labels": {"side": null}, "name": "cellar"}`), 200)
	var b struct {
		Name, StorageClass, Metageneration string
		Labels                             map[string]string
	}
	decode(t, w, &b)
	same(t, b.Name+" "+b.StorageClass+" "+b.Metageneration, "attic ARCHIVE 3")
	same(t, b.Labels, map[string]string{"floor": "3"})
}

func TestAnUpdateClearsWhatItDoesNotName(t *testing.T) {
	a := storage(t)
	want(t, send(a, "PATCH", root+"/attic", `{"labels": {"floor": "3"}}`), 200)
	w := want(t, send(a, "PUT", root+"/attic", `{"website": {"mainPageSuffix": "index"}}`), 200)
	if strings.Contains(w.Body.String(), "labels") || !strings.Contains(w.Body.String(), "mainPageSuffix") {
		t.Errorf("got %s, want the website and no labels", w.Body)
	}
}

func TestVersioningIsRefusedRatherThanFeigned(t *testing.T) {
	a := storage(t)
	same(t, reason(t, send(a, "PATCH", root+"/attic", `{"versioning": {"enabled": true}}`)), "501 notImplemented")
	same(t, reason(t, send(a, "GET", root+"/attic/o?versions=true", "")), "501 notImplemented")
}

func TestAStaleMetagenerationStopsAChange(t *testing.T) {
	a := storage(t)
	want(t, send(a, "PATCH", root+"/attic?ifMetagenerationMatch=1", `{"labels": {"a": "b"}}`), 200)
	same(t, reason(t, send(a, "PATCH", root+"/attic?ifMetagenerationMatch=1", `{"labels": {"a": "c"}}`)), "412 conditionNotMet")
	want(t, send(a, "GET", root+"/attic?ifMetagenerationNotMatch=2", ""), 304)
	same(t, reason(t, send(a, "PATCH", root+"/attic?ifMetagenerationNotMatch=2", `{}`)), "412 conditionNotMet")
	same(t, reason(t, send(a, "GET", root+"/attic?ifMetagenerationMatch=two", "")), "400 invalid")
}

func TestALockNeedsTheMetageneration(t *testing.T) {
	a := storage(t)
	same(t, reason(t, send(a, "POST", root+"/attic/lockRetentionPolicy", "")), "400 invalid")
	w := want(t, send(a, "POST", root+"/attic/lockRetentionPolicy?ifMetagenerationMatch=1", ""), 200)
	if !strings.Contains(w.Body.String(), `"isLocked":true`) {
		t.Errorf("got %s, want a locked policy", w.Body)
	}
}

func TestAListComesInPages(t *testing.T) {
	a := storage(t)
	for _, name := range []string{"c", "a", "b"} {
		put(t, a, name, name)
	}
	first := send(a, "GET", root+"/attic/o?maxResults=2", "")
	same(t, names(t, first, "name"), []string{"a", "b"})
	rest := send(a, "GET", root+"/attic/o?maxResults=2&pageToken="+field(t, first, "nextPageToken"), "")
	same(t, names(t, rest, "name"), []string{"c"})
	same(t, field(t, rest, "nextPageToken"), "")
	same(t, reason(t, send(a, "GET", root+"/attic/o?pageToken=*", "")), "400 invalid")
	same(t, reason(t, send(a, "GET", root+"/attic/o?maxResults=0", "")), "400 invalid")
}

func TestNamesAreFoldedAtTheDelimiter(t *testing.T) {
	a := storage(t)
	for _, name := range []string{"box/1", "box/2", "box", "crate/x/y", "lid"} {
		put(t, a, strings.ReplaceAll(name, "/", "%2F"), name)
	}
	w := send(a, "GET", root+"/attic/o?delimiter=/", "")
	same(t, names(t, w, "name"), []string{"box", "lid"})
	var list struct{ Prefixes []string }
	decode(t, w, &list)
	same(t, list.Prefixes, []string{"box/", "crate/"})
	same(t, names(t, send(a, "GET", root+"/attic/o?prefix=box/", ""), "name"), []string{"box/1", "box/2"})
	same(t, names(t, send(a, "GET", root+"/attic/o?startOffset=box/2&endOffset=lid", ""), "name"), []string{"box/2", "crate/x/y"})
}

func TestAPolicyIsReplacedOnlyIfItIsStillThat(t *testing.T) {
	a := storage(t)
	etag := field(t, want(t, send(a, "GET", root+"/attic/iam", ""), 200), "etag")
	policy := `{"etag": "` + etag + `", "version": 1, "bindings": [{"role": "roles/storage.admin", "members": ["user:a@example.org"]}]}`
	want(t, send(a, "PUT", root+"/attic/iam", policy), 200)
	same(t, reason(t, send(a, "PUT", root+"/attic/iam", policy)), "412 conditionNotMet")
	if got := send(a, "GET", root+"/attic/iam", "").Body.String(); !strings.Contains(got, "roles/storage.admin") {
		t.Errorf("got %s, want the new binding", got)
	}
	same(t, send(a, "GET", root+"/attic/iam/testPermissions?permissions=a&permissions=b", "").Body.String(),
		`{"kind":"storage#testIamPermissionsResponse","permissions":["a","b"]}`+"\n")
}

func TestNotificationsComeAndGo(t *testing.T) {
	a := storage(t)
	const topic = `{"topic": "//pubsub.googleapis.com/projects/p/topics/t", "payload_format": "JSON_API_V1"}`
	same(t, reason(t, send(a, "POST", root+"/attic/notificationConfigs", `{"topic": "t", "payload_format": "NONE"}`)), "400 invalid")
	id := field(t, want(t, send(a, "POST", root+"/attic/notificationConfigs", topic), 200), "id")
	want(t, send(a, "GET", root+"/attic/notificationConfigs/"+id, ""), 200)
	want(t, send(a, "DELETE", root+"/attic/notificationConfigs/"+id, ""), 204)
	same(t, reason(t, send(a, "DELETE", root+"/attic/notificationConfigs/"+id, "")), "404 notFound")
	same(t, names(t, send(a, "GET", root+"/attic/notificationConfigs", ""), "id"), []string{})
}

func TestAKeyGoesOnlyWhenItIsInactive(t *testing.T) {
	a := storage(t)
	const all = "/storage/v1/projects/p/hmacKeys"
	var made struct {
		Metadata struct{ AccessID, Etag string }
	}
	decode(t, want(t, send(a, "POST", all+"?serviceAccountEmail=a@example.org", ""), 200), &made)
	one := all + "/" + made.Metadata.AccessID
	same(t, reason(t, send(a, "DELETE", one, "")), "400 invalid")
	same(t, reason(t, send(a, "PUT", one, `{"state": "INACTIVE", "etag": "old"}`)), "412 conditionNotMet")
	want(t, send(a, "PUT", one, `{"state": "INACTIVE", "etag": "`+made.Metadata.Etag+`"}`), 200)
	same(t, names(t, send(a, "GET", all, ""), "state"), []string{"INACTIVE"})
	want(t, send(a, "DELETE", one, ""), 204)
	same(t, reason(t, send(a, "GET", one, "")), "404 notFound")
}

func TestEveryProjectHasAServiceAccount(t *testing.T) {
	w := want(t, send(storage(t), "GET", "/storage/v1/projects/p/serviceAccount", ""), 200)
	if got := field(t, w, "email_address"); !strings.HasSuffix(got, "@gs-project-accounts.iam.gserviceaccount.com") {
		t.Errorf("got %q", got)
	}
}

func TestGrantsAreAddedChangedAndTakenAway(t *testing.T) {
	a := storage(t)
	put(t, a, "box%2F1", "x")
	for _, list := range []string{"/attic/acl", "/attic/defaultObjectAcl", "/attic/o/box%2F1/acl"} {
		before := len(names(t, want(t, send(a, "GET", root+list, ""), 200), "entity"))
		want(t, send(a, "POST", root+list, `{"entity": "allUsers", "role": "READER"}`), 200)
		want(t, send(a, "PUT", root+list+"/allUsers", `{"role": "OWNER"}`), 200)
		same(t, field(t, send(a, "GET", root+list+"/allUsers", ""), "role"), "OWNER")
		same(t, len(names(t, send(a, "GET", root+list, ""), "entity")), before+1)
		same(t, reason(t, send(a, "PATCH", root+list+"/nobody", `{"role": "OWNER"}`)), "404 notFound")
		same(t, reason(t, send(a, "PUT", root+list+"/allUsers", `{"role": "KING"}`)), "400 invalid")
		want(t, send(a, "DELETE", root+list+"/allUsers", ""), 204)
		same(t, reason(t, send(a, "GET", root+list+"/allUsers", "")), "404 notFound")
	}
}

func TestACannedListIsChosenByName(t *testing.T) {
	a := storage(t)
	want(t, send(a, "POST", root+"?project=p&predefinedAcl=publicRead&predefinedDefaultObjectAcl=private", `{"name": "yard"}`), 200)
	same(t, len(names(t, send(a, "GET", root+"/yard/acl", ""), "entity")), 2)
	same(t, len(names(t, send(a, "GET", root+"/yard/defaultObjectAcl", ""), "entity")), 1)
	want(t, send(a, "POST", upload+"?uploadType=media&name=gate&predefinedAcl=bucketOwnerRead", "x"), 200)
	same(t, names(t, send(a, "GET", root+"/attic/o/gate/acl", ""), "role"), []string{"OWNER", "READER"})
	same(t, reason(t, send(a, "POST", upload+"?uploadType=media&name=gate&predefinedAcl=mine", "x")), "400 invalid")
}

func TestWhatTheLedgerSaysIsWhatWasDone(t *testing.T) {
	a := storage(t)
	put(t, a, "box", "things")
	put(t, a, "box", "other things")
	want(t, send(a, "POST", upload+"?uploadType=media&name=box&ifGenerationMatch=0", "third"), 412)
	e := a.Effects().Kinds["object"]
	same(t, e, sim.Effect{Count: 2, Amount: 18, Repeated: 1})
}

func TestEveryStatusHasAReasonOfItsOwn(t *testing.T) {
	a := storage(t)
	if err := a.SetSteps("storage.buckets.get: 408, 410, 429, 500, 503, 504"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 6 {
		got = append(got, reason(t, send(a, "GET", root+"/attic", "")))
	}
	same(t, got, []string{"408 uploadBrokenConnection", "410 gone", "429 rateLimitExceeded", "500 internalError",
		"503 backendError", "504 backendError"})
}
