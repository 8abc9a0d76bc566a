package classify

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// envelope is the error envelope that comes alone with status 200.
var envelope = Rule{
	ID: "envelope",
	When: Match{Statuses: statuses(200, 299), Media: []string{"application/json"}, JSON: []JSONMatch{
		{Path: dotted("code"), Value: is("-1")}, {Path: dotted("entries"), Absent: true},
	}},
	Then: Verdict{Class: Transient, Executed: No, Retry: Idempotent},
}

func TestEnvelopeAloneIsAFailure(t *testing.T) {
	c := rules(t, envelope)
	for _, row := range []struct {
		name string
		x    *Exchange
		want Class
	}{
		{"alone", answer("GET", 200).body("application/json", `{"code":"-1"}`), Transient},
		{"number", answer("GET", 200).body("application/json", `{"code":-1}`), Transient},
		{"with a charset", answer("GET", 200).body("application/json;charset=UTF-8", `{"code":"-1"}`), Transient},
		{"type in capitals", answer("GET", 200).body("Application/JSON", `{"code":"-1"}`), Transient},
		{"behind a mark", answer("GET", 200).body("application/json", "\xef\xbb\xbf{\"code\":\"-1\"}"), Transient},
		{"in UTF-16", answer("GET", 200).body("application/json", inUTF16(`{"code":"-1"}`)), Transient},
		{"with entries", answer("GET", 200).body("application/json", `{"code":"-1","entries":[]}`), OK},
		{"another code", answer("GET", 200).body("application/json", `{"code":"-10"}`), OK},
		{"an array", answer("GET", 200).body("application/json", `["-1"]`), OK},
		{"another type", answer("GET", 200).body("text/html", `{"code":"-1"}`), OK},
		{"no body", answer("GET", 200), OK},
		{"entries may follow the peek", answer("GET", 200).cut("application/json", `{"code":"-1","title":"x`), OK},
		{"closed before the end of the peek", answer("GET", 200).cut("application/json", `{"code":"-1"}   `), Transient},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := c.Classify(row.x, nil); got.Class != row.want {
				t.Errorf("got %v (%s), want %v", got.Class, got.Rule, row.want)
			}
		})
	}
}

const (
	wms130 = `<?xml version="1.0" encoding="UTF-8"?><ServiceExceptionReport version="1.3.0" xmlns="http://www.opengis.net/ogc">` +
		`<ServiceException code="LayerNotDefined">no</ServiceException></ServiceExceptionReport>`
	wms111 = `<?xml version='1.0' encoding="ISO-8859-1" standalone="no" ?><!DOCTYPE ServiceExceptionReport SYSTEM ` +
		`"http://schemas.opengis.net/wms/1.1.1/exception_1_1_1.dtd"><!-- d` + "\xe9" + `j` + "\xe0" + ` vu --><ServiceExceptionReport version="1.1.1"><ServiceException>x</ServiceException></ServiceExceptionReport>`
	wms10 = "\n<WMTException version=\"1.0.0\">no</WMTException>"
)

func ows(version, code string) string {
	return `<ows:ExceptionReport xmlns:ows="http://www.opengis.net/ows/` + version + `" version="2.0.0"><ows:Exception exceptionCode="` +
		code + `" locator="typeNames"><ows:ExceptionText>x</ows:ExceptionText></ows:Exception></ows:ExceptionReport>`
}

// ogc tells exceptions that heal from those that do not.
func ogc(t testing.TB) *Classifier {
	return rules(t,
		Rule{ID: "ogc permanent", When: Match{XML: &XMLMatch{Names: []string{"ServiceException"}, Attr: "code", Value: is("Invalid.*|LayerNotDefined")}},
			Then: Verdict{Class: Permanent, Executed: No}},
		Rule{ID: "ows permanent", When: Match{XML: &XMLMatch{Names: []string{"Exception"}, Attr: "exceptionCode", Value: is("Invalid.*|Missing.*")}},
			Then: Verdict{Class: Permanent, Executed: No}},
		Rule{ID: "exception", When: Match{XML: &XMLMatch{Names: []string{"ServiceExceptionReport", "ServiceException", "ExceptionReport", "WMTException"}}},
			Then: Verdict{Class: Transient, Retry: Idempotent}})
}

func TestExceptionReports(t *testing.T) {
	c := ogc(t)
	for _, row := range []struct {
		name string
		x    *Exchange
		want string
	}{
		{"WMS 1.3.0", answer("GET", 200).body("text/xml", wms130), "ogc permanent"},
		{"WMS 1.3.0 with a charset", answer("GET", 200).body("text/xml;charset=UTF-8", wms130), "ogc permanent"},
		{"WMS 1.1.1 with a document type, in Latin-1", answer("GET", 200).body("application/vnd.ogc.se_xml; charset=ISO-8859-1", wms111), "exception"},
		{"WMS 1.0", answer("GET", 200).body("text/xml", wms10), "exception"},
		{"OWS 1.0", answer("GET", 200).body("text/xml; charset=utf-8", ows("1.0", "NoApplicableCode")), "exception"},
		{"OWS 1.1", answer("GET", 200).body("application/xml", ows("1.1", "InvalidParameterValue")), "ows permanent"},
		{"OWS 2.0", answer("GET", 200).body("application/xml;charset=ISO-8859-1", ows("2.0", "MissingParameterValue")), "ows permanent"},
		{"OWS without a namespace", answer("GET", 200).body("text/xml", `<ExceptionReport><Exception exceptionCode="x"/></ExceptionReport>`), "exception"},
		{"OWS in UTF-16", answer("GET", 200).body("text/xml", inUTF16(ows("1.1", "InvalidParameterValue"))), "ows permanent"},
		{"attribute with a reference", answer("GET", 200).body("text/xml", `<Exception exceptionCode="&#73;nvalid"/>`), "ows permanent"},
		{"as plain text", answer("GET", 200).body("text/plain", wms130), "ogc permanent"},
		{"without a type", answer("GET", 200).body("", wms130), "ogc permanent"},
		{"with status 400", answer("GET", 400).body("text/xml", wms130), "ogc permanent"},
		{"late in the first 2048 bytes", answer("GET", 200).cut("text/xml", "<!--"+strings.Repeat(" ", 1980)+"--><ServiceException>"), "exception"},
		{"cut within the attribute", answer("GET", 200).cut("text/xml", `<ServiceExceptionReport><ServiceException code="Lay`), "exception"},
		{"behind broken markup", answer("GET", 200).cut("text/xml", `<a b=c>&<<ServiceException>`), "exception"},

		{"as a picture", answer("GET", 200).body("image/png", wms130), "ok"},
		{"a picture", answer("GET", 200).body("image/png", "\x89PNG\r\n\x1a\n"), "ok"},
		{"a longer name", answer("GET", 200).body("text/xml", `<ExceptionReporter/>`), "ok"},
		{"a name cut short", answer("GET", 200).cut("text/xml", `<a><ServiceException`), "ok"},
		{"in a comment", answer("GET", 200).body("text/xml", `<a><!-- <ServiceException> --></a>`), "ok"},
		{"in a CDATA section", answer("GET", 200).body("text/xml", `<a><![CDATA[<ServiceException>]]></a>`), "ok"},
		{"in text", answer("GET", 200).body("text/xml", `<a>ServiceException</a>`), "ok"},
		{"features", answer("GET", 200).body("text/xml; subtype=gml/3.1.1", `<wfs:FeatureCollection><gml:Exception/></wfs:FeatureCollection>`), "ok"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(c.Classify(row.x, nil).Rule, row.want); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
		})
	}
}

func TestExceptionBeyondEveryCutIsFoundOnceItsNameIsThere(t *testing.T) {
	c := ogc(t)
	from := strings.Index(wms111, "<ServiceExceptionReport v") + len("<ServiceExceptionReport ")
	for n := range len(wms111) {
		want := "ok"
		if n >= from {
			want = "exception"
		}
		if got := c.Classify(answer("GET", 200).cut("text/xml", wms111[:n]), nil).Rule; got != want {
			t.Errorf("cut at %d: %s, want %s", n, got, want)
		}
	}
}

func TestDialects(t *testing.T) {
	graphql := Rule{ID: "graphql", When: Match{Statuses: statuses(200, 200),
		JSON: []JSONMatch{{Path: dotted("errors.*.extensions.code"), Value: is("THROTTLED")}}},
		Then: Verdict{Class: Throttled, Retry: Idempotent, Scope: ScopeKey}}
	salesforce := Rule{ID: "salesforce", When: Match{Statuses: statuses(403, 403), JSON: []JSONMatch{
		{Path: dotted("*.errorCode"), Value: is("REQUEST_LIMIT_EXCEEDED")}, {Path: dotted("*.message"), Value: regexp.MustCompile("^Concurrent")}}},
		Then: Verdict{Class: Throttled, Executed: No, Retry: Any}}
	cloudflare := Rule{ID: "cloudflare", When: Match{Text: regexp.MustCompile(`error code: 1015`)}, Then: Verdict{Class: Throttled, Executed: No, Retry: Any}}
	page := Rule{ID: "page", When: Match{Statuses: statuses(200, 299), Body: BodyHTML}, Then: Verdict{Class: Invalid, Retry: Once}}
	none := Rule{ID: "empty", When: Match{Statuses: statuses(200, 200), Methods: []string{"GET"}, Body: BodyEmpty}, Then: Verdict{Class: Transient, Executed: No, Retry: Idempotent}}
	broken := Rule{ID: "broken", When: Match{Body: BodyMalformed}, Then: Verdict{Class: Invalid, Retry: Idempotent}}
	c := rules(t, graphql, salesforce, cloudflare, page, none, broken)
	for _, row := range []struct {
		name string
		x    *Exchange
		want string
	}{
		{"GraphQL throttled", answer("POST", 200).body("application/json", `{"data":null,"errors":[{"message":"x"},{"extensions":{"code":"THROTTLED"}}]}`), "graphql"},
		{"GraphQL throttled, cut behind it", answer("POST", 200).cut("application/json", `{"errors":[{"extensions":{"code":"THROTTLED"}}],"data":{"a":"`), "graphql"},
		{"GraphQL throttled, then broken", answer("POST", 200).body("application/json", `{"errors":[{"extensions":{"code":"THROTTLED",}}]}`), "graphql"},
		{"GraphQL other error", answer("POST", 200).body("application/json", `{"errors":[{"extensions":{"code":"OTHER"}}]}`), "ok"},
		{"root array", answer("GET", 403).body("application/json", `[{"message":"ConcurrentRequests (Concurrent API Requests)","errorCode":"REQUEST_LIMIT_EXCEEDED"}]`), "salesforce"},
		{"root array of another", answer("GET", 403).body("application/json", `[{"message":"no","errorCode":"INVALID_SESSION_ID"}]`), "status 403"},
		{"edge in another language", answer("GET", 403).body("text/plain; charset=UTF-8", "error code: 1015"), "cloudflare"},
		{"HTML where JSON was promised", answer("GET", 200).body("application/json", "<!-- x -->\n<!DOCTYPE HTML><html>"), "page"},
		{"a page", answer("GET", 200).cut("text/html", "\xef\xbb\xbf  <html lang=en>"), "page"},
		{"XHTML", answer("GET", 200).cut("application/xhtml+xml", "<?xml version='1.0'?><html xmlns='x'>"), "page"},
		{"an open comment", answer("GET", 200).cut("text/html", "<!-- <html>"), "ok"},
		{"JSON", answer("GET", 200).body("application/json", `{"html":"<html>"}`), "ok"},
		{"empty", answer("GET", 200).body("text/plain", ""), "empty"},
		{"white space", answer("GET", 200).body("application/json", " \r\n"), "empty"},
		{"empty picture", answer("GET", 200).body("image/png", ""), "empty"},
		{"empty to HEAD", answer("HEAD", 200).body("text/plain", ""), "ok"},
		{"empty to POST", answer("POST", 200).body("application/json", ""), "ok"},
		{"broken JSON", answer("GET", 200).body("application/json", `{"a":1,}`), "broken"},
		{"unclosed JSON", answer("GET", 200).body("application/json", `{"a":1`), "broken"},
		{"unclosed at the end of the peek", answer("GET", 200).cut("application/json", `{"a":1`), "ok"},
		{"broken before the end of the peek", answer("GET", 200).cut("application/json", `{"a":1,}`), "broken"},
		{"broken XML", answer("GET", 200).body("text/xml", `<a></b>`), "broken"},
		{"broken error body", answer("GET", 500).body("application/json", `oops`), "broken"},
		{"text is never broken", answer("GET", 200).body("text/plain", `{"a":1,}`), "ok"},
		{"part", answer("GET", 206).body("application/json", `{"a":`), "ok"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(c.Classify(row.x, nil).Rule, row.want); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
		})
	}
}

func TestGraphQLThrottleIsRepeatedByWhatTheRuleSays(t *testing.T) {
	x := answer("POST", 200).body("application/json", `{"errors":[{"extensions":{"code":"THROTTLED"}}]}`)
	when := Match{JSON: []JSONMatch{{Path: dotted("errors.0.extensions.code"), Value: is("THROTTLED")}}}
	queries := rules(t, Rule{ID: "q", When: when, Then: Verdict{Class: Throttled, Executed: No, Retry: Any}})
	mutations := rules(t, Rule{ID: "m", When: when, Then: Verdict{Class: Throttled, Executed: Maybe, Retry: Idempotent}})
	if !queries.Classify(x, nil).Repeatable("POST", false) {
		t.Error("a throttled query is not repeated")
	}
	if mutations.Classify(x, nil).Repeatable("POST", false) {
		t.Error("a mutation whose outcome is unknown is repeated")
	}
}

func TestNumberAtTheEndOfThePeekMayGoOn(t *testing.T) {
	c := rules(t, Rule{ID: "12", When: Match{JSON: []JSONMatch{{Path: dotted("code"), Value: is("12")}}}, Then: Verdict{Class: Transient}})
	if got := c.Classify(answer("GET", 400).cut("application/json", `{"code":12`), nil).Rule; got != "status 400" {
		t.Errorf("got %s, want status 400", got)
	}
}

func TestNumbersKeepTheirSpelling(t *testing.T) {
	for _, n := range []string{"9007199254740993", "1.50", "1e2"} {
		c := rules(t, Rule{ID: "n", When: Match{JSON: []JSONMatch{{Path: dotted("n"), Value: is(regexp.QuoteMeta(n))}}}, Then: Verdict{Class: Transient}})
		if got := c.Classify(answer("GET", 200).body("application/json", `{"n":`+n+`}`), nil).Rule; got != "n" {
			t.Errorf("%s: got %s, want n", n, got)
		}
	}
}

func TestDeepDocumentIsReadAsFarAsItGoes(t *testing.T) {
	c := rules(t, Rule{ID: "code", When: Match{JSON: []JSONMatch{{Path: dotted("code"), Value: is("1")}, {Path: dotted("b"), Absent: true}}}, Then: Verdict{Class: Transient}},
		Rule{ID: "first", When: Match{JSON: []JSONMatch{{Path: dotted("code")}}}, Then: Verdict{Class: Transient}})
	x := answer("GET", 200).cut("application/json", `{"code":1,"deep":`+strings.Repeat("[", policy.PeekLimit))
	if got := c.Classify(x, nil).Rule; got != "first" {
		t.Errorf("got %s, want first", got)
	}
}

// counting is a Selector that notes how often it sees which document.
type counting struct{ docs map[string]int }

func (c counting) Select(doc any) []any {
	m, _ := doc.(map[string]any)
	c.docs[fmt.Sprintf("%p", m)]++
	return nil
}

func TestDocumentIsDecodedOnce(t *testing.T) {
	sel := counting{map[string]int{}}
	var rs []Rule
	for i := range 10 {
		rs = append(rs, Rule{ID: strconv.Itoa(i), When: Match{JSON: []JSONMatch{{Path: sel}}}})
	}
	rules(t, rs...).Classify(answer("GET", 200).body("application/json", `{}`), nil)
	if len(sel.docs) != 1 {
		t.Errorf("%d documents were seen, want 1", len(sel.docs))
	}
}

func TestWaitFromTheBody(t *testing.T) {
	limited := answer("GET", 429).body("application/json", `{"error":{"retry":1.5,"at":"2026-07-15T02:20:00Z"},"message":"try again in 6.2s"}`)
	skewed := answer("GET", 429, "Date", "Wed, 15 Jul 2026 02:04:00 GMT").body("application/json", `{"at":"2026-07-15T02:04:30Z"}`)
	for _, row := range []struct {
		name string
		x    *Exchange
		w    Wait
		then time.Duration
		want time.Duration
	}{
		{"number", limited, Wait{Source: Source{Path: dotted("error.retry"), Format: hint.Seconds}}, 0, 1500 * time.Millisecond},
		{"date", limited, Wait{Source: Source{Path: dotted("error.at"), Format: hint.ISO8601}}, 0, 6 * time.Minute},
		{"prose", limited, Wait{Source: Source{Text: regexp.MustCompile(`again in (\S+s)`), Format: hint.GoDuration}}, 0, 6200 * time.Millisecond},
		{"less than the floor", limited, Wait{Source: Source{Path: dotted("error.retry"), Format: hint.Seconds, Floor: time.Minute}}, 0, time.Minute},
		{"less than the constant", limited, Wait{Source: Source{Path: dotted("error.retry"), Format: hint.Seconds}}, time.Hour, time.Hour},
		{"nothing there", limited, Wait{Source: Source{Path: dotted("error.none"), Format: hint.Seconds, Floor: time.Second}}, 0, time.Second},
		{"not a wait", limited, Wait{Source: Source{Path: dotted("message"), Format: hint.Seconds, Floor: time.Second}}, 0, time.Second},
		{"first that can be read", limited, Wait{Source: Source{Path: dotted("error.*"), Format: hint.ISO8601}}, 0, 6 * time.Minute},
		{"body not seen", answer("GET", 429), Wait{Source: Source{Path: dotted("error.retry"), Format: hint.Seconds, Floor: time.Second}}, 0, time.Second},
		{"date against the server's own clock", skewed, Wait{Source: Source{Path: dotted("at"), Format: hint.ISO8601}}, 0, 30 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := rules(t, Rule{ID: "it", When: Match{Statuses: statuses(429, 429)}, Then: Verdict{Class: Throttled, Wait: row.then}, Wait: row.w})
			if got := c.Classify(row.x, nil).Wait; got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

// FuzzClassify: no body makes a rule panic or hold that is not there, and what
// the decoder of the standard library reads, the rules see alike.
func FuzzClassify(f *testing.F) {
	for _, s := range []string{`{"code":"-1"}`, `[{"errorCode":"x"}]`, wms111, ows("1.1", "x"), inUTF16(`{"code":1}`), "<html>", `{"code":`, "\xff", " "} {
		f.Add([]byte(s), 200, "application/json", true)
		f.Add([]byte(s), 500, "text/xml", false)
	}
	c, ps := New([]Rule{
		{ID: "code", When: Match{JSON: []JSONMatch{{Path: dotted("code")}}}, Then: Verdict{Class: Transient, Retry: Any},
			Wait: Wait{Source: Source{Path: dotted("wait"), Format: hint.RetryAfter}}},
		{ID: "array", When: Match{JSON: []JSONMatch{{Path: dotted("*.errorCode"), Value: is("x")}, {Path: dotted("0.ok"), Absent: true}}}},
		{ID: "xml", When: Match{XML: &XMLMatch{Names: []string{"Exception", "ServiceException"}, Attr: "exceptionCode"}}},
		{ID: "page", When: Match{Body: BodyHTML}},
		{ID: "empty", When: Match{Body: BodyEmpty}},
		{ID: "broken", When: Match{Body: BodyMalformed}, Wait: Wait{Source: Source{Text: regexp.MustCompile("in (.*)s"), Format: hint.Seconds}}},
	})
	if len(ps) > 0 {
		f.Fatal(ps)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int, media string, end bool) {
		x := &Exchange{Method: http.MethodGet, Status: status, Header: http.Header{"Content-Type": {media}},
			ContentLength: -1, Body: body, Peeked: true, BodyEnd: end, Now: received, SentAt: received}
		if n := c.Peek(x); n < 0 || n > policy.PeekLimit {
			t.Errorf("peek of %d bytes", n)
		}
		v := c.Classify(x, &policy.Verify{MaxAge: time.Hour})
		if v.Wait < 0 {
			t.Errorf("a wait of %v", v.Wait)
		}
		for _, step := range c.Explain(x).Steps {
			if step.Held && step.Rule != v.Rule && v.Class != Truncated && v.Class != Stale {
				t.Errorf("%s is said to hold, and %s decided", step.Rule, v.Rule)
			}
		}
		var doc map[string]json.RawMessage
		if kindOf(essenceOf(media)) != kindJSON || status < 200 || json.Unmarshal(body, &doc) != nil {
			return
		}
		if _, there := doc["code"]; there != (v.Rule == "code") {
			t.Errorf("%q: rule %q", body, v.Rule)
		}
	})
}

// FuzzTags: an element that is looked for is found behind any text and any
// broken markup, with the value of its attribute as it was meant.
func FuzzTags(f *testing.F) {
	f.Add("text & more", "x")
	f.Add("a > b ]]> -->", `"it's" <&lt;>`)
	f.Add("", "")
	want := map[string]bool{"Exception": true}
	f.Fuzz(func(t *testing.T, text, code string) {
		for _, tag := range tagsIn([]byte(text), want) {
			if tag.name != "Exception" {
				t.Errorf("found %q", tag.name)
			}
		}
		if strings.Contains(text, "<") || len(code) > maxValue/8 {
			return
		}
		doc := "<a b=c>" + text + `<x:Exception x:code="` + html.EscapeString(code) + `"`
		found := tagsIn([]byte(doc), want)
		if len(found) != 1 || !slices.Equal(found[0].attrs, []attr{{"code", code}}) {
			t.Errorf("%q: found %q", doc, found)
		}
	})
}
