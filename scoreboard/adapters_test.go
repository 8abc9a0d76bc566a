package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runs runs a command below the root of the repository.
func runs(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// adapters are the files that speak for a client, with this ending.
func adapters(t *testing.T, ending string) []string {
	t.Helper()
	var files []string
	for _, c := range clients {
		if strings.HasSuffix(c.Adapter, ending) {
			files = append(files, c.Adapter)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no adapter ends in %s", ending)
	}
	return files
}

func TestGoAdaptersBuild(t *testing.T) {
	runs(t, "go", "build", "-o", t.TempDir(), "./examples/check/heed")
	runs(t, "go", "-C", "examples/check/go", "vet", "./...")
}

func TestNodeAdaptersParse(t *testing.T) {
	for _, file := range append(adapters(t, ".mjs"), "examples/check/node/lines.mjs") {
		runs(t, "node", "--check", file)
	}
}

func TestPythonAdaptersCompile(t *testing.T) {
	t.Setenv("PYTHONPYCACHEPREFIX", t.TempDir())
	runs(t, "python3", append([]string{"-m", "py_compile", "examples/check/python/lines.py"}, adapters(t, ".py")...)...)
}

func TestBashAdapterParses(t *testing.T) {
	for _, file := range adapters(t, ".sh") {
		runs(t, "bash", "-n", file)
	}
}

func TestEveryClientCanBeStartedWithBothSettings(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range clients {
		if seen[c.Key] {
			t.Errorf("%s is there twice", c.Key)
		}
		seen[c.Key] = true
		if _, err := os.Stat(filepath.Join("..", c.Adapter)); err != nil {
			t.Error(err)
		}
		for _, setting := range settings {
			if s := c.Run(place{}, setting); len(s.Args) == 0 && s.Gateway == "" {
				t.Errorf("%s, %s: nothing is started", c.Key, setting)
			}
			if c.Set[setting] == "" {
				t.Errorf("%s, %s: what is set is not said", c.Key, setting)
			}
		}
	}
}

func TestAdaptersHaveAtMostFortyLines(t *testing.T) {
	for _, c := range clients {
		if c.Adapter == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", c.Adapter))
		if err != nil {
			t.Fatal(err)
		}
		if n := linesOfCode(text); n > 40 || n < 5 {
			t.Errorf("%s has %d lines of code, want 5 to 40", c.Adapter, n)
		}
	}
}

// imports are those of Go in parentheses; what else is no code is told by the
// beginning of its line.
var (
	imports   = regexp.MustCompile(`(?ms)^import \(.*?^\)`)
	docString = regexp.MustCompile(`(?s)""".*?"""`)
	noCode    = []string{"//", "#", "import ", "from ", "package "}
)

// linesOfCode are those that are neither blank nor a comment nor an import.
func linesOfCode(text []byte) (n int) {
	text = docString.ReplaceAll(imports.ReplaceAll(text, nil), nil)
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		if line != "" && !slices.ContainsFunc(noCode, func(p string) bool { return strings.HasPrefix(line, p) }) {
			n++
		}
	}
	return n
}
