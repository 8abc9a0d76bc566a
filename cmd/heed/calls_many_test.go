package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhatWasDoneIsCountedThoughTheNextOneFailed(t *testing.T) {
	failed := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_heed/calls", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"calls":[{"id":"a","state":"queued"},{"id":"b","state":"queued"}]}`)
	})
	mux.HandleFunc("POST /_heed/calls/a/cancel", func(w http.ResponseWriter, r *http.Request) {
		<-failed // it is carried out while the other one fails
		fmt.Fprint(w, `{"id":"a","state":"cancelled"}`)
	})
	mux.HandleFunc("POST /_heed/calls/b/cancel", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInsufficientStorage)
		fmt.Fprint(w, `{"title":"The disk of the queue is full"}`)
		close(failed)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	var out, said strings.Builder
	code := run(context.Background(), []string{"calls", "cancel", "--all", "--admin", srv.Listener.Addr().String()}, nil, strings.NewReader(""), &out, &said)
	if code != exitOutage || !strings.Contains(said.String(), "cancelled 1 call(s) of 2;") {
		t.Errorf("got exit code %d and\n%s", code, said.String())
	}
}

func TestWhatAnImportTookInIsCountedThoughItFailed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInsufficientStorage)
		fmt.Fprint(w, `{"title":"The disk of the queue is full","detail":"Make room.","imported":{"accepted":2,"duplicates":0,"refused":[]}}`)
	}))
	defer srv.Close()
	var out, said strings.Builder
	code := run(context.Background(), []string{"calls", "import", "-", "--admin", srv.Listener.Addr().String()}, nil, strings.NewReader("{}\n{}\n{}\n"), &out, &said)
	if code != exitOutage || !strings.Contains(said.String(), "; 2 call(s) are taken in, and the same import can be repeated") {
		t.Errorf("got exit code %d and\n%s", code, said.String())
	}
}
