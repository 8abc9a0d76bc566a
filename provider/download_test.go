package provider_test

import (
	"net/http"
	"testing"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider"
)

// download is the head of a large answer that is what was asked for.
func download(media string) *classify.Exchange {
	return &classify.Exchange{Method: http.MethodGet, Path: "/v1/files/1", Status: http.StatusOK,
		Header: http.Header{"Content-Type": {media}}, ContentLength: 200 << 20}
}

func classifier(t testing.TB, name string) *classify.Classifier {
	t.Helper()
	p, err := provider.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	c, problems := classify.New(p.Rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

func TestNoProfileLooksIntoADownload(t *testing.T) {
	for _, name := range provider.Names() {
		c := classifier(t, name)
		for _, media := range []string{"application/octet-stream", "application/zip", "application/pdf", "image/tiff", "video/mp4"} {
			if got := c.Peek(download(media)); got != 0 {
				t.Errorf("%s: %s: got a look at %d bytes, want none", name, media, got)
			}
		}
	}
}

func TestALongJSONThatNoRuleConcernsIsNotLookedAt(t *testing.T) {
	p, problems := provider.Read("x.yaml", []byte(`
name: x
title: x
rules:
  - {id: x/a, when: {status: [429], json: [{path: $.error}]}, then: {class: throttled}}
  - {id: x/b, when: {status: [200], json: [{path: $.error}, {path: $.data, absent: true}]}, then: {class: invalid}}
  - {id: x/c, when: {status: [200], body: empty}, then: {class: invalid}}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c, _ := classify.New(p.Rules)
	if got := c.Peek(download("application/json")); got != 0 {
		t.Errorf("got a look at %d bytes, want none", got)
	}
}

// A download pays for the look at the rules, and for nothing else.
func BenchmarkDownload(b *testing.B) {
	for _, name := range []string{"generic", "openai", "wfs"} {
		b.Run(name, func(b *testing.B) {
			c, x := classifier(b, name), download("application/octet-stream")
			b.ReportAllocs()
			for b.Loop() {
				if c.Peek(x) != 0 || c.Classify(x, nil).Class != classify.OK {
					b.Fatal("the download was looked at")
				}
			}
		})
	}
}
