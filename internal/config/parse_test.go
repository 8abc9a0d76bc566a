package config_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/internal/config"
)

var update = flag.Bool("update", false, "write what Parse says into testdata")

func TestProblems(t *testing.T) {
	each(t, "problems", func(t *testing.T, input []byte) string {
		_, _, err := config.Parse("heed.yaml", input)
		problems, ok := errors.AsType[config.Problems](err)
		if !ok {
			t.Fatalf("got error %v, want Problems", err)
		}
		return problems.Error() + "\n"
	})
}

func TestWarnings(t *testing.T) {
	each(t, "warnings", func(t *testing.T, input []byte) string {
		_, warnings, err := config.Parse("heed.yaml", input)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, w := range warnings {
			b.WriteString(w.String() + "\n")
		}
		return b.String()
	})
}

// each compares what say makes of the heed.yaml of every txtar in testdata/dir
// with its second file, or writes that file.
func each(t *testing.T, dir string, say func(t *testing.T, input []byte) string) {
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// The txtar form, with two files: what is read and what is said.
			head, rest, _ := strings.Cut(string(text), "-- heed.yaml --\n")
			input, want, told := strings.Cut(rest, "-- "+dir+" --\n")
			got := say(t, []byte(input))
			if strings.Contains(got, "canary") {
				t.Errorf("a secret is told:\n%s", got)
			}
			if *update {
				text := head + "-- heed.yaml --\n" + input + "-- " + dir + " --\n" + got
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !told {
				t.Fatal("no expectation; run with -update")
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("differs (-got +want):\n%s", diff)
			}
		})
	}
}

func TestTooLargeAFileIsNotParsed(t *testing.T) {
	_, _, err := config.Parse("heed.yaml", bytes.Repeat([]byte("a: b\n"), 2<<20))
	if got, want := err.Error(), "heed.yaml: the file is too large; keep it under 1 MiB"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAMissingFileSaysHowToGetOne(t *testing.T) {
	_, _, err := config.Load(filepath.Join(t.TempDir(), "heed.yaml"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "heed init") {
		t.Errorf("got %v, want ErrNotExist and a remedy", err)
	}
}
