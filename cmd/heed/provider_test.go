package main

import (
	"strings"
	"testing"
)

func TestATableKeepsToItsWidth(t *testing.T) {
	g := grid{{"A", "B"}, {"one/two/three/four/five", "some words that need more than one line, and averyveryverylongwordwithoutblanks"}}
	for _, width := range []int{30, 40, 100} {
		var b strings.Builder
		if err := g.write(&b, columns{Width: width, Wrap: []int{0, 1}}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if got := len(strings.TrimRight(line, "\n")); got > width {
				t.Errorf("width %d: got a line of %d: %q", width, got, line)
			}
		}
		for _, word := range []string{"one/", "words", "need"} {
			if !strings.Contains(b.String(), word) {
				t.Errorf("width %d: %q is lost:\n%s", width, word, b.String())
			}
		}
	}
}
