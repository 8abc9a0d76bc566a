package packtest

import (
	"net/http"
	"testing"
)

func answer(status int, media, body string) Answer {
	return Answer{Status: status, Header: http.Header{"Content-Type": {media}}, Body: body}
}

func TestWhatFallsShortIsTold(t *testing.T) {
	want := answer(400, "application/json", `{"code":7,"list":[{"id":"a"}]}`)
	paper := answer(200, "text/xml", `<r v="1"><e code="X">t</e></r>`)
	for _, tt := range []struct {
		got, want Answer
		tell      string
	}{
		{answer(400, "application/json;charset=UTF-8", `{"more":1,"list":[{"id":"b"},{}],"code":7}`), want, ""},
		{answer(500, "application/json", want.Body), want, "status 500, want 400"},
		{answer(400, "text/plain", want.Body), want, `a document of the kind "text/plain", want "json"`},
		{answer(400, "application/json", ""), want, "0 bytes of body, want 30"},
		{answer(400, "application/json", `{"code":7,"list":[{}]}`), want, "no /list/*/id"},
		{answer(400, "application/json", `{"code":"7","list":[{"id":"a"}]}`), want, "/code is string, want float64"},
		{answer(400, "application/json", `{"code":8,"list":[{"id":"a"}]}`), want, `/code is "8", want "7"`},
		{answer(200, "application/gml+xml", `<x:r xmlns:x="u" v="2"><x:e code="X"/></x:r>`), paper, ""},
		{answer(200, "text/xml", `<r v="2"><e code="Y"/></r>`), paper, `/r/e/code is "Y", want "X"`},
		{answer(200, "text/xml", `<r v="2"><f code="X"/></r>`), answer(200, "text/xml", `<r><e/></r>`), "no /r/e"},
	} {
		if got := Alike(tt.got, tt.want, "code"); got != tt.tell {
			t.Errorf("%s: got %q, want %q", tt.got.Body, got, tt.tell)
		}
	}
}
