package main

import (
	"io"
	"strings"
	"testing"
)

// mistake is an output that shows one.
type mistake struct{}

func (mistake) Write([]byte) (int, error) { panic("a mistake") }

func TestAPanicIsNoSuccess(t *testing.T) {
	defer func() {
		if got := recover(); got != "a mistake" {
			t.Errorf("got %v, want the panic", got)
		}
	}()
	code := run(t.Context(), []string{"version"}, nil, strings.NewReader(""), mistake{}, io.Discard)
	t.Errorf("got exit code %d, want a panic", code)
}
