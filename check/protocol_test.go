package check_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/heedproject/heed/check"
)

// protocol is the page that describes what a client and a check say to each other.
func protocol(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../examples/check/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePageOfTheProtocolHasEveryField(t *testing.T) {
	page := protocol(t)
	for _, what := range []any{check.Hello{}, check.Task{}, check.Outcome{}, check.Setting{}} {
		for f := range reflect.TypeOf(what).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, `"`+name+`"`) {
				t.Errorf("%T: there is nothing on %q", what, name)
			}
		}
	}
}

func TestThePageOfTheProtocolHasEveryOperation(t *testing.T) {
	page := protocol(t)
	for _, kind := range []check.Kind{check.Call, check.Poll, check.Receive} {
		if !strings.Contains(page, "`"+string(kind)+"`") {
			t.Errorf("there is nothing on %q", kind)
		}
	}
}

func TestThePageOfTheProtocolHasEveryVariable(t *testing.T) {
	out := t.TempDir() + "/environment"
	c := check.Command{Args: []string{"/bin/sh", "-c", "env >" + out, "sh", "{url}"}}
	cases := oneRead()
	cases[0].Needs, cases[0].Provider, cases[0].Ask[0].Deadline = []check.Claim{check.Tokens}, "github", 1e9
	if _, err := check.Run(t.Context(), check.Options{Client: c, Cases: cases, Claims: cases[0].Needs}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	page, seen := protocol(t), 0
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PWD", "OLDPWD", "SHLVL", "_": // of the shell
			continue
		}
		if seen++; !strings.Contains(page, "`"+name+"`") {
			t.Errorf("there is nothing on %s", name)
		}
	}
	if !strings.Contains(string(text), "HEED_CHECK_TOKEN_URL=") || seen < 20 {
		t.Errorf("only %d variables were seen:\n%s", seen, text)
	}
}
