package gcs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
)

func TestAnObjectIsWhatWasUploaded(t *testing.T) {
	a := storage(t)
	meta := put(t, a, "box", "hello")
	same(t, field(t, meta, "size")+" "+field(t, meta, "crc32c")+" "+field(t, meta, "md5Hash"), "5 mnG7TA== XUFAKrxLKna5cZ2REBfFkg==")
	for _, path := range []string{root + "/attic/o/box?alt=media", "/download/storage/v1/b/attic/o/box", "/attic/box"} {
		w := want(t, send(a, "GET", path, ""), 200)
		same(t, w.Body.String(), "hello")
		h := w.Header()
		same(t, h.Get("Content-Type")+" "+h.Get("X-Goog-Hash")+" "+h.Get("X-Goog-Generation"),
			"text/plain crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg== "+field(t, meta, "generation"))
	}
}

func TestANameMayHaveSlashes(t *testing.T) {
	a := storage(t)
	put(t, a, "floor%2F3%2Fbox%20one", "x")
	same(t, field(t, want(t, send(a, "GET", root+"/attic/o/floor%2F3%2Fbox%20one", ""), 200), "name"), "floor/3/box one")
	same(t, want(t, send(a, "GET", "/attic/floor/3/box%20one", ""), 200).Body.String(), "x")
	want(t, send(a, "GET", "/gcs"+root+"/attic/o/floor%2F3%2Fbox%20one", ""), 200)
}

// A case may be called as a part of the paths that follow it.
func TestACaseIsAWorldOfItsOwn(t *testing.T) {
	a := storage(t)
	want(t, send(a, "POST", "/t/o"+root+"?project=p", `{"name": "attic"}`), 200)
	w := want(t, send(a, "POST", "/t/o"+upload+"?uploadType=resumable&name=a%2Fb", ""), 200)
	address := strings.TrimPrefix(w.Header().Get("Location"), "http://example.com")
	want(t, send(a, "PUT", address, "hello"), 200)
	want(t, send(a, "GET", "/t/o"+root+"/attic/o/a%2Fb", ""), 200)
	want(t, send(a, "GET", root+"/attic/o/a%2Fb", ""), 404)
}

func TestANameNeedsToBeSaid(t *testing.T) {
	a := storage(t)
	same(t, reason(t, send(a, "POST", upload+"?uploadType=media", "x")), "400 invalid")
	same(t, reason(t, send(a, "POST", upload+"?uploadType=carrier-pigeon&name=box", "x")), "400 invalid")
}

func TestAMultipartUploadBringsMetadataAlong(t *testing.T) {
	a := storage(t)
	body := "--cut\r\nContent-Type: application/json\r\n\r\n" +
		`{"name": "box", "metadata": {"made": "oak"}, "contentType": "text/x-box", "crc32c": "mnG7TA=="}` +
		"\r\n--cut\r\nContent-Type: text/plain\r\n\r\nhello\r\n--cut--\r\n"
	want(t, send(a, "POST", upload+"?uploadType=multipart", body, "Content-Type: multipart/related; boundary=cut"), 200)
	w := want(t, send(a, "GET", "/attic/box", ""), 200)
	same(t, w.Body.String()+" "+w.Header().Get("Content-Type")+" "+w.Header().Get("X-Goog-Meta-made"), "hello text/x-box oak")
}

func TestAMalformedMultipartUploadIsRefused(t *testing.T) {
	a := storage(t)
	for _, try := range []struct{ kind, body string }{
		{"multipart/related", "x"}, {"text/plain", "x"}, {"multipart/related; boundary=cut", "--cut\r\n\r\n{}\r\n--cut--"},
		{"multipart/related; boundary=cut", "--cut\r\n\r\nnonsense\r\n--cut\r\n\r\nx\r\n--cut--"}, {"multipart/related; boundary=cut", ""},
	} {
		same(t, reason(t, send(a, "POST", upload+"?uploadType=multipart&name=box", try.body, "Content-Type: "+try.kind)), "400 invalid")
	}
	same(t, reason(t, send(a, "GET", root+"/attic/o/box", "")), "404 notFound")
}

func TestAChecksumThatDiffersKeepsNothing(t *testing.T) {
	a := storage(t)
	for _, hash := range []string{"crc32c=AAAAAA==", "md5=AAAA", "crc32c=mnG7TA==,md5=AAAA"} {
		same(t, reason(t, send(a, "POST", upload+"?uploadType=media&name=box", "hello", "X-Goog-Hash: "+hash)), "400 invalid")
	}
	same(t, reason(t, send(a, "GET", root+"/attic/o/box", "")), "404 notFound")
	want(t, send(a, "POST", upload+"?uploadType=media&name=box", "hello", "X-Goog-Hash: crc32c=mnG7TA=="), 200)
}

func TestAChecksumInTheMetadataIsComparedToo(t *testing.T) {
	a := storage(t)
	for _, fields := range []string{`{"crc32c": "AAAAAA=="}`, `{"md5Hash": "AAAA"}`} {
		w := want(t, send(a, "POST", upload+"?uploadType=resumable&name=box", fields), 200)
		address := strings.TrimPrefix(w.Header().Get("Location"), "http://example.com")
		same(t, reason(t, send(a, "PUT", address, "hello")), "400 invalid")
	}
}

func TestKeysOfACustomerAreRefusedRatherThanIgnored(t *testing.T) {
	a := storage(t)
	w := send(a, "POST", upload+"?uploadType=media&name=box", "secret", "X-Goog-Encryption-Algorithm: AES256")
	same(t, reason(t, w), "501 notImplemented")
	want(t, send(a, "GET", "/attic/box", ""), 404)
}

func TestARangeIsServed(t *testing.T) {
	a := storage(t)
	put(t, a, "box", "0123456789")
	for _, ask := range []struct {
		header, body, told string
		status             int
	}{
		{"bytes=2-4", "234", "bytes 2-4/10", 206}, {"bytes=7-", "789", "bytes 7-9/10", 206}, {"bytes=-3", "789", "bytes 7-9/10", 206},
		{"bytes=-99", "0123456789", "bytes 0-9/10", 206}, {"bytes=8-99", "89", "bytes 8-9/10", 206},
		{"bytes=4-2", "0123456789", "", 200}, {"lines=1-2", "0123456789", "", 200}, {"bytes=0-1,3-4", "0123456789", "", 200},
	} {
		w := want(t, send(a, "GET", "/attic/box", "", "Range: "+ask.header), ask.status)
		same(t, w.Body.String()+" "+w.Header().Get("Content-Range"), ask.body+" "+ask.told)
	}
}

func TestARangeBeyondTheEndCannotBeServed(t *testing.T) {
	a := storage(t)
	put(t, a, "box", "0123456789")
	w := want(t, send(a, "GET", root+"/attic/o/box?alt=media", "", "Range: bytes=10-"), 416)
	same(t, reason(t, w)+" "+w.Header().Get("Content-Range"), "416 requestedRangeNotSatisfiable bytes */10")
}

func TestAWriteOfAnotherGenerationIsStopped(t *testing.T) {
	a := storage(t)
	first := field(t, put(t, a, "box", "1"), "generation")
	second := field(t, put(t, a, "box", "2"), "generation")
	if first >= second {
		t.Errorf("got generations %s and %s, want them to grow", first, second)
	}
	same(t, reason(t, send(a, "DELETE", root+"/attic/o/box?ifGenerationMatch="+first, "")), "412 conditionNotMet")
	same(t, reason(t, send(a, "GET", root+"/attic/o/box?generation="+first, "")), "404 notFound")
	want(t, send(a, "GET", "/attic/box", "", "X-Goog-If-Generation-Match: "+first), 412)
	want(t, send(a, "GET", root+"/attic/o/box?ifGenerationNotMatch="+second, ""), 304)
	same(t, reason(t, send(a, "POST", upload+"?uploadType=media&name=box&ifGenerationMatch=0", "3")), "412 conditionNotMet")
	want(t, send(a, "DELETE", root+"/attic/o/box?ifGenerationMatch="+second, ""), 204)
}

func TestMetadataIsPatchedAndUpdated(t *testing.T) {
	a := storage(t)
	put(t, a, "box", "x")
	w := want(t, send(a, "PATCH", root+"/attic/o/box", `{"metadata": {"made": "oak"}, "size": "99"}`), 200)
	same(t, field(t, w, "metageneration")+" "+field(t, w, "contentType")+" "+field(t, w, "size"), "2 text/plain 1")
	w = want(t, send(a, "PUT", root+"/attic/o/box", `{"cacheControl": "no-store"}`), 200)
	same(t, field(t, w, "contentType")+field(t, w, "cacheControl"), "no-store")
}

func TestACopyHasTheContentsAndAGenerationOfItsOwn(t *testing.T) {
	a := storage(t)
	put(t, a, "box", "hello")
	w := want(t, send(a, "POST", root+"/attic/o/box/rewriteTo/b/attic/o/new%2Fbox", ""), 200)
	var done struct {
		Done     bool
		Resource struct{ Name, Generation string }
	}
	decode(t, w, &done)
	same(t, done.Done, true)
	same(t, done.Resource.Name, "new/box")
	want(t, send(a, "POST", root+"/attic/o/box/copyTo/b/attic/o/third", `{"contentType": "text/x-third"}`), 200)
	same(t, send(a, "GET", "/attic/third", "").Header().Get("Content-Type"), "text/x-third")
	same(t, send(a, "GET", "/attic/new/box", "").Body.String(), "hello")
	same(t, reason(t, send(a, "POST", root+"/attic/o/box/copyTo/b/attic/o/fourth?ifSourceGenerationMatch=1", "")), "412 conditionNotMet")
	same(t, reason(t, send(a, "POST", root+"/attic/o/none/copyTo/b/attic/o/fourth", "")), "404 notFound")
	same(t, reason(t, send(a, "POST", root+"/attic/o/box/copyTo/b/none/o/fourth", "")), "404 notFound")
}

func TestACompositeHasNoMD5(t *testing.T) {
	a := storage(t)
	put(t, a, "1", "hello")
	put(t, a, "2", " there")
	w := want(t, send(a, "POST", root+"/attic/o/all/compose", `{"sourceObjects": [{"name": "1"}, {"name": "2"}]}`), 200)
	same(t, field(t, w, "md5Hash"), "")
	same(t, send(a, "GET", "/attic/all", "").Body.String(), "hello there")
	same(t, reason(t, send(a, "POST", root+"/attic/o/all/compose", `{"sourceObjects": [{"name": "3"}]}`)), "404 notFound")
	same(t, reason(t, send(a, "POST", root+"/attic/o/all/compose", `{"sourceObjects": []}`)), "400 invalid")
	same(t, reason(t, send(a, "POST", root+"/attic/o/all/compose",
		`{"sourceObjects": [{"name": "1", "objectPreconditions": {"ifGenerationMatch": "7"}}]}`)), "412 conditionNotMet")
}

func TestTheXMLAPISpeaksXML(t *testing.T) {
	a := storage(t)
	w := want(t, send(a, "GET", "/attic/none", ""), 404)
	same(t, w.Body.String(), `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+
		`<Error><Code>NoSuchKey</Code><Message>The specified object does not exist.</Message></Error>`)
}

// session begins a resumable upload and returns the path of its address.
func session(t *testing.T, a *sim.API, query string) string {
	t.Helper()
	w := want(t, send(a, "POST", upload+"?uploadType=resumable&name=box"+query, `{"contentType": "text/plain"}`), 200)
	_, path, ok := strings.Cut(w.Header().Get("Location"), "http://example.com")
	if !ok {
		t.Fatalf("got Location %q, want one at the host that was asked", w.Header().Get("Location"))
	}
	return path
}

const piece = 256 << 10

var text = strings.Repeat("0123456789abcdef", 3*piece/16)

// next sends the bytes from up to to of text; total is what the client says of it.
func next(a *sim.API, path string, from, to int, total string) (status int, kept string) {
	w := send(a, "PUT", path, text[from:to], fmt.Sprintf("Content-Range: bytes %d-%d/%s", from, to-1, total))
	return w.Code, w.Header().Get("Range")
}

func TestAResumableUploadTellsHowFarItIs(t *testing.T) {
	a := storage(t)
	path := session(t, a, "")
	status, kept := next(a, path, 0, piece, "*")
	same(t, fmt.Sprint(status, " ", kept), "308 bytes=0-262143")
	w := send(a, "PUT", path, "", "Content-Range: bytes */*")
	same(t, fmt.Sprint(w.Code, " ", w.Header().Get("Range")), "308 bytes=0-262143")
	status, _ = next(a, path, piece, len(text), fmt.Sprint(len(text)))
	same(t, status, 200)
	same(t, send(a, "GET", "/attic/box", "").Body.String() == text, true)
	w = want(t, send(a, "PUT", path, "", "Content-Range: bytes */*"), 200)
	same(t, field(t, w, "size"), fmt.Sprint(len(text)))
}

func TestNothingIsKeptOfWhatIsNoWholePiece(t *testing.T) {
	a := storage(t)
	path := session(t, a, "")
	status, kept := next(a, path, 0, 1000, "*")
	same(t, fmt.Sprint(status, " ", kept), "308 ")
	status, kept = next(a, path, 0, piece+1000, "*")
	same(t, fmt.Sprint(status, " ", kept), "308 bytes=0-262143")
}

func TestBytesThatAreThereAreNotTakenTwice(t *testing.T) {
	a := storage(t)
	path := session(t, a, "")
	next(a, path, 0, 2*piece, "*")
	next(a, path, piece, 2*piece, "*")
	status, _ := next(a, path, piece, len(text), fmt.Sprint(len(text)))
	same(t, status, 200)
	same(t, send(a, "GET", "/attic/box", "").Body.String() == text, true)
}

func TestAGapIsRefused(t *testing.T) {
	a := storage(t)
	path := session(t, a, "")
	same(t, reason(t, send(a, "PUT", path, text[piece:], fmt.Sprintf("Content-Range: bytes %d-%d/*", piece, len(text)-1))), "400 invalid")
}

func TestAContentRangeMustFitTheBody(t *testing.T) {
	a := storage(t)
	path := session(t, a, "")
	for _, r := range []string{"bytes 0-9/*", "bytes 0-2/2", "bytes -1-1/*", "bytes */3", "bytes 0-2", "lines 0-2/*", "bytes 2-0/*", "bytes +0-2/*"} {
		same(t, reason(t, send(a, "PUT", path, "abc", "Content-Range: "+r)), "400 invalid")
	}
}

func TestAClientThatCannotBear308GetsItInAHeader(t *testing.T) {
	a := storage(t)
	w := send(a, "POST", session(t, a, ""), text[:piece], "Content-Range: bytes 0-262143/*", "X-GUploader-No-308: yes")
	same(t, fmt.Sprint(w.Code, " ", w.Header().Get("X-Http-Status-Code-Override")), "200 308")
}

func TestAnUploadWithoutARangeIsTheWhole(t *testing.T) {
	a := storage(t)
	want(t, send(a, "PUT", session(t, a, ""), "hello"), 200)
	same(t, send(a, "GET", "/attic/box", "").Body.String(), "hello")
}

func TestASessionLivesForAWeek(t *testing.T) {
	a := storage(t)
	path := session(t, a, "")
	a.Case("").Advance(7*24*time.Hour - time.Second)
	want(t, send(a, "PUT", path, "", "Content-Range: bytes */*"), 308)
	a.Case("").Advance(time.Second)
	same(t, reason(t, send(a, "PUT", path, "hello")), "410 gone")
}

func TestACancelledUploadIsGone(t *testing.T) {
	a := storage(t)
	path := session(t, a, "")
	want(t, send(a, "DELETE", path, ""), 499)
	same(t, reason(t, send(a, "PUT", path, "hello")), "404 notFound")
}

func TestTheConditionsOfAnUploadHoldAtItsEnd(t *testing.T) {
	a := storage(t)
	path := session(t, a, "&ifGenerationMatch=0")
	put(t, a, "box", "somebody was faster")
	same(t, reason(t, send(a, "PUT", path, "hello")), "412 conditionNotMet")
	same(t, send(a, "GET", "/attic/box", "").Body.String(), "somebody was faster")
}

func FuzzContentRange(f *testing.F) {
	for _, seed := range []string{"bytes 0-2/3", "bytes 0-2/*", "bytes */3", "bytes */*", "bytes 1-2/3", "bytes 9223372036854775807-2/3"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, header string, n int) {
		if n < 0 || n > 1000 || strings.ContainsAny(header, "\r\n\x00") {
			t.Skip()
		}
		a := storage(t)
		w := send(a, "PUT", session(t, a, ""), strings.Repeat("x", n), "Content-Range: "+header)
		if w.Code == 200 && field(t, w, "size") != fmt.Sprint(n) {
			t.Errorf("%q and %d bytes made an object of %s", header, n, field(t, w, "size"))
		}
		if w.Code != 200 && w.Code != 308 && w.Code != 400 {
			t.Errorf("%q and %d bytes: got status %d", header, n, w.Code)
		}
	})
}

func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-1", "bytes=-3", "bytes=5-", "bytes=-", "bytes=1-0", "bytes=99999999999999999999-"} {
		f.Add(seed)
	}
	const whole = "0123456789"
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsAny(header, "\r\n\x00") {
			t.Skip()
		}
		a := storage(t)
		put(t, a, "box", whole)
		w := send(a, "GET", "/attic/box", "", "Range: "+header)
		switch {
		case w.Code == 416, w.Code == 200 && w.Body.String() == whole:
		case w.Code == 206 && w.Body.Len() > 0 && strings.Contains(whole, w.Body.String()):
		default:
			t.Errorf("%q: got %d %q", header, w.Code, w.Body)
		}
	})
}
