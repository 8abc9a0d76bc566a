package arch

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestFeaturesSpeakOfEveryRequirement(t *testing.T) {
	problems, err := CheckFeatures(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestFeaturesThatAreMissingOrUnprovenAreFound(t *testing.T) {
	var rows strings.Builder
	for _, id := range ids() {
		switch id {
		case "S1":
			rows.WriteString("| S1 | `retry:` | `backoff.TestFull` |\n")
		case "S2":
			rows.WriteString("| S2 | `retry:` | `call.TestGone` |\n")
		case "S3":
			rows.WriteString("| S3 | by default | seen by hand |\n")
		case "S4": // no row
		case "S5":
			rows.WriteString("| S5 | not yet | – |\n| S5 | not yet | – |\n")
		default:
			rows.WriteString("| " + id + " | not yet | – |\n")
		}
	}
	got, err := CheckFeatures(fstest.MapFS{
		"docs/features.md":        {Data: []byte(rows.String())},
		"backoff/backoff_test.go": {Data: []byte("package backoff\n\nfunc TestFull(t *testing.T) {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"S2: call.TestGone does not exist",
		`S3: names no test; write one as package.TestName, or say "not yet"`,
		"S4: has 0 rows in docs/features.md, must have one",
		"S5: has 2 rows in docs/features.md, must have one",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("problems (-got +want):\n%s", diff)
	}
}
