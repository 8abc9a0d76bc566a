//go:build linux

package check_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/check"
	"github.com/heedproject/heed/sim"
)

// rogue lets a shell script loose and returns what it was told.
func rogue(t *testing.T, c check.Client, limit time.Duration) check.Result {
	t.Helper()
	r, err := check.Run(t.Context(), check.Options{Client: c, Cases: oneRead(), Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return r.Results[0]
}

func shell(script string) check.Command {
	return check.Command{Args: []string{"/bin/sh", "-c", script, "sh", "{url}"}, Env: os.Environ()}
}

func speaking(script string) check.Lines {
	return check.Lines{Args: []string{"/bin/sh", "-c", `echo '{"name":"rogue","claims":["retry"]}'; ` + script}, Env: os.Environ()}
}

func TestACommandThatHangsIsEnded(t *testing.T) {
	got := rogue(t, shell("sleep 1000"), 300*time.Millisecond)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "did not end in time") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

func TestACommandThatFloodsIsEnded(t *testing.T) {
	got := rogue(t, shell("exec cat /dev/zero"), time.Minute)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "wrote more than 64 MiB") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

func TestACommandThatCrashesHasReportedFailure(t *testing.T) {
	cases := oneRead()
	var believed bool
	cases[0].Judge = func(e *check.Evidence) check.Verdict {
		believed = e.Outcomes["read"].OK
		return check.Verdict{Mark: check.Pass}
	}
	_, err := check.Run(t.Context(), check.Options{Client: shell("kill -SEGV $$"), Cases: cases})
	if err != nil || believed {
		t.Errorf("got %v, success %v", err, believed)
	}
}

func TestChildrenThatLeftTheGroupEndWithTheirClient(t *testing.T) {
	word := "1000." + strconv.Itoa(os.Getpid())
	cases := oneRead()
	left := 0
	cases[0].Judge = func(e *check.Evidence) check.Verdict {
		left = e.Output.Left
		return check.Verdict{Mark: check.Pass}
	}
	// The child has a session of its own and holds the outputs open.
	script := "setsid sleep " + word + " & while ! grep -qs sleep /proc/$!/comm; do :; done"
	if _, err := check.Run(t.Context(), check.Options{Client: shell(script), Cases: cases}); err != nil {
		t.Fatal(err)
	}
	if left != 1 {
		t.Errorf("%d processes were left behind, want 1", left)
	}
	if still := running(t, word); still != "" {
		t.Errorf("still running: %s", still)
	}
}

// running finds a process by a word in its command line.
func running(t *testing.T, word string) string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		line, err := os.ReadFile(f)
		if err == nil && bytes.Contains(line, []byte(word)) && bytes.Contains(line, []byte("sleep")) {
			return f
		}
	}
	return ""
}

func TestAClientThatWritesGarbageIsToldSo(t *testing.T) {
	got := rogue(t, speaking("read line; echo what; echo '[1,2'; exit 3"), 20*time.Second)
	if want := "wrote 2 lines that are no outcome and ended with status 3"; got.Mark != check.Fail || !strings.Contains(got.Cause, want) {
		t.Errorf("got %s: %s, want %q", got.Mark, got.Cause, want)
	}
}

func TestAClientThatEndsInTheMiddleIsToldSo(t *testing.T) {
	got := rogue(t, speaking("read line; kill -KILL $$"), 20*time.Second)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "in the middle of an operation") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

func TestWhatAClientWroteBeforeItEndedInTheMiddleIsToldWithoutItsSecrets(t *testing.T) {
	got := rogue(t, speaking(`read line; { echo Traceback; echo "KeyError: $HEED_CHECK_API_KEY"; } >&2; exit 1`), 20*time.Second)
	want := "the client ended with status 1 in the middle of an operation, after 0 requests; it wrote: Traceback KeyError: •••"
	if got.Mark != check.Fail || got.Cause != want {
		t.Errorf("got %s: %s, want %q", got.Mark, got.Cause, want)
	}
}

func TestTheEndOfALongOutputIsToldWithoutAPartOfASecret(t *testing.T) {
	script := `read line; { echo "$HEED_CHECK_API_KEY"; head -c 290 /dev/zero | tr '\0' x; } >&2; exit 1`
	if got := rogue(t, speaking(script), 20*time.Second); strings.Contains(got.Cause, "read-0") || !strings.Contains(got.Cause, "it wrote: ") {
		t.Errorf("got %s", got.Cause)
	}
}

// misspoken is what a check says of a client that answers its first operation so.
func misspoken(t *testing.T, answer string) string {
	t.Helper()
	_, err := check.Run(t.Context(), check.Options{Cases: oneRead(), Client: speaking("read line; echo '" + answer + "'; read line")})
	if err == nil {
		t.Fatalf("%s was taken", answer)
	}
	return err.Error()
}

func TestAMistakeInTheProtocolIsToldAsOne(t *testing.T) {
	for answer, want := range map[string]string{
		`{"id":"zzz","ok":true}`:                   `line 2: it answered id "zzz", which nobody asked for`,
		`{"id":"read","ok":"yes"}`:                 "line 2: ok must be true or false, got string",
		`{"id":"read","ok":true,"status":"200"}`:   "line 2: status must be a whole number, got string",
		`{"id":"read","ok":true,"status":200.5}`:   "line 2: status must be a whole number, got number 200.5",
		`{"id":7,"ok":true}`:                       "line 2: id must be a string, got number",
		`{"id":"read","ok":false,"error":{"a":1}}`: "line 2: error must be a string, got object",
		`{"id":"read","status":200}`:               "line 2: ok is missing; it must be true or false",
		`{"ok":true}`:                              "line 2: id is missing; it must be that of the operation",
	} {
		if got := misspoken(t, answer); !strings.Contains(got, "the client does not keep to the protocol: rogue/read, "+want) {
			t.Errorf("%s: got %q, want %q", answer, got, want)
		}
	}
}

func TestASecondAnswerToAnOperationIsAMistakeInTheProtocol(t *testing.T) {
	cases := oneRead()
	cases[0].Ask = append(cases[0].Ask, check.Operation{ID: "more", Path: "/v1/bibs/2", Wave: 1})
	_, err := check.Run(t.Context(), check.Options{Cases: cases, Client: speaking(`read line; echo '{"id":"read","ok":true}'; read line; echo '{"id":"read","ok":true}'; read line`)})
	if err == nil || !strings.Contains(err.Error(), `line 3: it answered id "read" a second time`) {
		t.Errorf("got %v", err)
	}
}

func TestAMistakeInTheProtocolOfOneCaseLeavesItUnknown(t *testing.T) {
	cases := append(oneRead(), oneRead()...)
	cases[0].ID, cases[0].Patient = "rogue/wrong", true
	script := `while read line; do case $HEED_CHECK_CASE in *wrong) echo '{"id":"read"}';; *) echo '{"id":"read","ok":true}';; esac; done`
	r, err := check.Run(t.Context(), check.Options{Cases: cases, Client: speaking(script)})
	if err != nil {
		t.Fatal(err)
	}
	one := r.Results[0]
	if want := "the client does not keep to the protocol, so it was not judged: line 2: ok is missing"; one.Mark != check.Unknown || !strings.HasPrefix(one.Cause, want) {
		t.Errorf("got %s: %s, want %q", one.Mark, one.Cause, want)
	}
}

func TestStrayLinesAreNotedOnceAndWithoutSecrets(t *testing.T) {
	script := `while read line; do echo "hello, $HEED_CHECK_API_KEY"; echo; echo '{"level":"info"}'; echo '{"id":"read","ok":true}'; done`
	r, err := check.Run(t.Context(), check.Options{Cases: oneRead(), Client: speaking(script)})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the client wrote 2 lines of what is no outcome to its output, where only outcomes belong; the first: rogue/read, line 2: hello, •••"}
	if diff := cmp.Diff(r.Notes, want); diff != "" {
		t.Error(diff)
	}
}

func TestAFirstLineOfTheWrongKindIsRefused(t *testing.T) {
	_, err := check.Run(t.Context(), check.Options{Cases: oneRead(),
		Client: check.Lines{Args: []string{"/bin/sh", "-c", `echo '{"claims":"retry"}'`}, Env: os.Environ()}})
	if err == nil || !strings.Contains(err.Error(), "in its first line claims must be a list of strings, got string") {
		t.Errorf("got %v", err)
	}
}

func TestALineWithoutAnEndIsBounded(t *testing.T) {
	got := rogue(t, speaking("exec cat /dev/zero"), time.Minute)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "wrote a line of more than 1 MiB") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

func TestAProgramThatDoesNotGreetIsRefusedWithWhatItWrote(t *testing.T) {
	_, err := check.Run(t.Context(), check.Options{Cases: oneRead(),
		Client: check.Lines{Args: []string{"/bin/sh", "-c", "echo usage: client; exit 2"}, Env: os.Environ()}})
	if err == nil || !strings.Contains(err.Error(), "usage: client") || !strings.Contains(err.Error(), "it must begin with a line") {
		t.Errorf("got %v", err)
	}
}

func TestAClientThatSendsWithoutEndIsStopped(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	got := rogue(t, shell(`curl -s "$1?[1-20000]" >/dev/null`), time.Minute)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "flooded the server with more than 5000 requests") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

func TestAClientThatClosesItsInputAndStaysIsEnded(t *testing.T) {
	got := rogue(t, check.Lines{Args: []string{"/bin/sh", "-c", `exec 0<&-; echo '{"claims":["retry"]}'; exec sleep 1000`}, Env: os.Environ()}, 20*time.Second)
	if want := "closed its input or its output, and did not end"; got.Mark != check.Fail || !strings.Contains(got.Cause, want) {
		t.Errorf("got %s: %s, want %q", got.Mark, got.Cause, want)
	}
}

func TestAClientThatClosesItsOutputAndStaysIsEnded(t *testing.T) {
	got := rogue(t, speaking("exec 1>&-; exec sleep 1000"), 20*time.Second)
	if want := "closed its input or its output, and did not end"; got.Mark != check.Fail || !strings.Contains(got.Cause, want) {
		t.Errorf("got %s: %s, want %q", got.Mark, got.Cause, want)
	}
}

func TestAClientThatDoesNotReadIsEnded(t *testing.T) {
	cases := oneRead()
	cases[0].Ask[0].Body = strings.Repeat("more than a pipe holds ", 10_000)
	r, err := check.Run(t.Context(), check.Options{Client: speaking("exec sleep 1000"), Cases: cases, Limit: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Results[0]; got.Mark != check.Fail || !strings.Contains(got.Cause, "did not end in time") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

func TestAClientThatIgnoresSignalsIsEnded(t *testing.T) {
	word := "1001." + strconv.Itoa(os.Getpid())
	got := rogue(t, speaking("trap '' TERM INT HUP; while :; do sleep "+word+"; done"), 300*time.Millisecond)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "did not end in time") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
	if still := running(t, word); still != "" {
		t.Errorf("still running: %s", still)
	}
}

func TestChildrenThatGoOnForkingAreEnded(t *testing.T) {
	word := "1002." + strconv.Itoa(os.Getpid())
	// Each has a session of its own, and the last one makes others until it is ended.
	script := "for i in 1 2 3 4 5 6 7 8; do setsid sleep " + word + " & done; setsid sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 0.01; setsid sleep " + word + " & done; wait' & wait"
	got := rogue(t, shell(script), 300*time.Millisecond)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "did not end in time") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
	if still := running(t, word); still != "" {
		t.Errorf("still running: %s", still)
	}
}

func TestAClientThatWritesLinesWithoutEndIsEnded(t *testing.T) {
	got := rogue(t, speaking("exec yes '{\"level\":\"info\"}'"), time.Minute)
	if got.Mark != check.Fail || !strings.Contains(got.Cause, "lines that are no outcome") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

func TestAClientThatEndsAtOnceHasSentNothing(t *testing.T) {
	r, err := check.Run(t.Context(), check.Options{Client: shell("exit 0"), Only: []string{"final/404", "transient/get-503-503", "lies/truncated"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.Results {
		if one.Mark != check.Fail || !strings.Contains(one.Cause, "no request came") {
			t.Errorf("%s: got %s: %s", one.ID, one.Mark, one.Cause)
		}
	}
}

func TestAClientThatSendsNothingPassesNothing(t *testing.T) {
	r, err := check.Run(t.Context(), check.Options{Client: shell("exit 1"), Only: []string{"final", "lies", "secrets", "outage"}})
	if err != nil {
		t.Fatal(err)
	}
	unseen := 0
	for _, one := range r.Results {
		if one.Mark == check.Pass {
			t.Errorf("%s passed: %s", one.ID, one.Cause)
		}
		if one.Mark == check.Unknown && strings.Contains(one.Cause, "no request came") {
			unseen++
		}
	}
	if unseen == 0 {
		t.Error("no case is unknown for want of a request")
	}
}

func TestAClientThatNeverStartsAgainHoldsNobodyUp(t *testing.T) {
	dir := t.TempDir() // it greets once
	c := check.Lines{Args: []string{"/bin/sh", "-c", `mkdir "$0/once" 2>/dev/null && echo '{"claims":["retry"]}'; exit 3`, dir}, Env: os.Environ()}
	r, err := check.Run(t.Context(), check.Options{Client: c, Only: []string{"final", "retry-after"}})
	if err != nil {
		t.Fatal(err)
	}
	untried := 0
	for _, one := range r.Results {
		if strings.Contains(one.Cause, "was not tried again") {
			untried++
		}
		if one.Mark == check.Pass {
			t.Errorf("%s passed", one.ID)
		}
	}
	if untried == 0 {
		t.Error("it was tried for every case")
	}
}

func TestWhatAClientSaysAtItsStartIsToldWithoutItsSecrets(t *testing.T) {
	dir := t.TempDir()
	c := check.Lines{Args: []string{"/bin/sh", "-c", `mkdir "$0/once" 2>/dev/null && echo '{"claims":["retry"]}' || echo "key is $HEED_CHECK_API_KEY"; exit 3`, dir},
		Env: os.Environ()}
	got := rogue(t, c, time.Minute)
	if !strings.Contains(got.Cause, "key is •••") || strings.Contains(got.Cause, "hc-0-") {
		t.Errorf("got %s", got.Cause)
	}
}

func TestAnInterruptedCheckLeavesNoProgramBehind(t *testing.T) {
	word := "1003." + strconv.Itoa(os.Getpid())
	ctx, cancel := context.WithCancel(t.Context())
	cases := oneRead()
	cases[0].Limit = time.Minute
	began := false
	cases[0].World = func(check.Place) sim.World {
		if !began { // the client starts now, and hangs
			began = true
			time.AfterFunc(200*time.Millisecond, cancel)
		}
		return sim.World{}
	}
	r, err := check.Run(ctx, check.Options{Client: speaking("exec sleep " + word), Cases: cases})
	if err == nil || r == nil || r.Results[0].Mark != check.Unknown {
		t.Errorf("got %v, %+v", err, r)
	}
	if still := running(t, word); still != "" {
		t.Errorf("still running: %s", still)
	}
}

func TestASecretIsFoundWhereverItIsInALongOutput(t *testing.T) {
	for name, script := range map[string]string{
		"in the middle":     `head -c 200000 /dev/zero | tr '\0' x; echo "$HEED_CHECK_API_KEY"; head -c 200000 /dev/zero | tr '\0' x`,
		"in two writes":     `printf %s "${HEED_CHECK_API_KEY%?????}"; sleep 0.05; printf %s "${HEED_CHECK_API_KEY#"${HEED_CHECK_API_KEY%?????}"}"`,
		"in base64":         `printf 'user:%s' "$HEED_CHECK_API_KEY" | base64 -w0`,
		"on standard error": `echo "$HEED_CHECK_API_KEY" >&2`,
	} {
		r, err := check.Run(t.Context(), check.Options{Client: shell(script), Only: []string{"secrets/query"}})
		if err != nil {
			t.Fatal(err)
		}
		if one := r.Results[0]; one.Mark != check.Fail || !strings.Contains(one.Cause, "the API key") {
			t.Errorf("%s: got %s: %s", name, one.Mark, one.Cause)
		}
	}
}
