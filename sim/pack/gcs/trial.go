package gcs

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heedproject/heed/sim"
)

// trial is a retry test: what shall go wrong for the requests that carry its
// id, method by method.
type trial struct {
	ID           string              `json:"id"`
	Instructions map[string][]string `json:"instructions"`
	Completed    bool                `json:"completed"`
	Transport    string              `json:"transport"`
}

func trials(x *sim.Exchange) *sim.Table[*trial] { return sim.Rows[*trial](x, "retry tests") }

// language is the instructions that are understood; compiled when first used, as
// every start of heed would pay for it.
type language struct {
	failNow, failAfter, breakAfter, shortAfter, stallAfter, plain *regexp.Regexp
}

var instructions = sync.OnceValue(func() language {
	return language{
		failNow:    regexp.MustCompile(`^return-([2-5][0-9]{2})$`),
		failAfter:  regexp.MustCompile(`^return-([2-5][0-9]{2})-after-([0-9]{1,6})K$`),
		breakAfter: regexp.MustCompile(`^return-broken-stream-after-([0-9]{1,6})K$`),
		shortAfter: regexp.MustCompile(`^return-broken-stream-final-chunk-after-([0-9]{1,9})B$`),
		stallAfter: regexp.MustCompile(`^stall-for-([0-9]{1,4})s-after-([0-9]{1,6})K$`),
		plain:      regexp.MustCompile(`^return-(reset-connection|broken-stream)$`),
	}
})

func (l language) knows(text string) bool {
	return slices.ContainsFunc([]*regexp.Regexp{l.failNow, l.failAfter, l.breakAfter, l.shortAfter, l.stallAfter, l.plain},
		func(r *regexp.Regexp) bool { return r.MatchString(text) })
}

func createTrial(x *sim.Exchange) sim.Answer {
	t := &trial{Transport: "HTTP"}
	if err := x.Decode(t); err != nil || len(t.Instructions) == 0 {
		return x.Refuse(*invalid("instructions", `Send {"instructions": {"storage.buckets.get": ["return-503"]}}.`))
	}
	if t.Transport = strings.ToUpper(t.Transport); t.Transport != "HTTP" {
		return x.Refuse(beyond("transport", "the transport "+t.Transport))
	}
	for _, method := range slices.Sorted(maps.Keys(t.Instructions)) {
		if !slices.ContainsFunc(operations(), func(o sim.Operation) bool { return isOf(method, o.Name) }) {
			return x.Refuse(beyond("instructions", "the method "+method))
		}
		for _, text := range t.Instructions[method] {
			if !instructions().knows(text) {
				return x.Refuse(beyond("instructions", "the instruction "+text))
			}
		}
	}
	t.ID, t.Completed = x.ID("retry-"), t.left() == 0
	trials(x).Put(t.ID, t)
	return sim.JSON(200, t)
}

// beyond refuses what this simulator lacks, so that a suite leaves it out.
func beyond(field, what string) sim.Refusal {
	return sim.Refusal{Kind: sim.BadRequest, Status: http.StatusNotImplemented, Field: field,
		Detail: "This simulator does not have " + what + "."}
}

// isOf tells whether an operation belongs to a method of the API: a download
// by the XML API, say, is a storage.objects.get too.
func isOf(method, operation string) bool {
	return operation == method || strings.HasPrefix(operation, method+".")
}

func (t *trial) left() (n int) {
	for _, list := range t.Instructions {
		n += len(list)
	}
	return n
}

func listTrials(x *sim.Exchange) sim.Answer {
	list := []*trial{}
	for _, t := range trials(x).All() {
		list = append(list, t)
	}
	return sim.JSON(200, map[string][]*trial{"retry_test": list})
}

func getTrial(x *sim.Exchange) sim.Answer {
	t, ok := trials(x).Get(x.Value("id"))
	if !ok {
		return x.Refuse(*missing("retry test"))
	}
	return sim.JSON(200, t)
}

func deleteTrial(x *sim.Exchange) sim.Answer {
	if !trials(x).Delete(x.Value("id")) {
		return x.Refuse(*missing("retry test"))
	}
	return sim.JSON(200, struct{}{})
}

// instruct is the script of the pack: the step that the retry test of x has
// for it, "" for none. The instruction is used up.
func instruct(x *sim.Exchange) string {
	id := x.Request.Header.Get("X-Retry-Test-Id")
	if id == "" {
		return ""
	}
	t, ok := trials(x).Get(id)
	if !ok {
		return ""
	}
	for _, method := range slices.Sorted(maps.Keys(t.Instructions)) {
		list := t.Instructions[method]
		if len(list) == 0 || !isOf(method, x.Operation()) {
			continue
		}
		step := translate(x, list[0])
		if step != "" {
			t.Instructions[method] = list[1:]
			t.Completed = t.left() == 0
		}
		return step
	}
	return ""
}

// translate turns an instruction into a step of the simulator, "" when its
// moment has not come.
func translate(x *sim.Exchange, text string) string {
	switch text {
	case "return-reset-connection":
		return "reset"
	case "return-broken-stream":
		return "cut(at=4)"
	}
	say := instructions()
	if m := say.failNow.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := say.failAfter.FindStringSubmatch(text); m != nil && reaches(x, kilo(m[2])) {
		return m[1]
	}
	if m := say.breakAfter.FindStringSubmatch(text); m != nil && sends(x) > kilo(m[1]) {
		return fmt.Sprintf("cut(at=%d)", kilo(m[1]))
	}
	if m := say.stallAfter.FindStringSubmatch(text); m != nil {
		switch n := kilo(m[2]); {
		case sends(x) > n && n > 0: // after none not even the header comes
			return fmt.Sprintf("stall(at=%d, for=%ss)", n, m[1])
		case sends(x) > n || reaches(x, n):
			return "slow(for=" + m[1] + "s)"
		}
	}
	if m := say.shortAfter.FindStringSubmatch(text); m != nil && completes(x) {
		return "cut-clean(at=" + m[1] + ")"
	}
	return ""
}

func kilo(digits string) int {
	n, _ := strconv.Atoi(digits) // digits is what it says
	return n << 10
}

// sends is how many bytes of an object x will be answered with, 0 if x asks
// for none.
func sends(x *sim.Exchange) int {
	if !isOf("storage.objects.get", x.Operation()) || !isMedia(x) {
		return 0
	}
	name := x.Value("path")
	if !isXML(x) {
		name = objectPath(x)[0]
	}
	b, ok := buckets(x).Get(x.Value("bucket"))
	if !ok || b.objects[name] == nil {
		return 0
	}
	from, to, _ := byteRange(x.Request.Header.Get("Range"), len(b.objects[name].content.data))
	return to - from
}

// reaches tells whether x brings an upload to n bytes or more. A resumable one
// keeps what came before the failure.
func reaches(x *sim.Exchange, n int) bool {
	u, c, ok := continued(x)
	if !ok {
		return isOf("storage.objects.insert", x.Operation()) && x.Query("uploadType") != "resumable" && len(x.Body) >= n
	}
	if c.to < n {
		return false
	}
	return u.take(x, c, n) == nil
}

// completes tells whether x is the last request of a resumable upload.
func completes(x *sim.Exchange) bool {
	u, c, ok := continued(x)
	return ok && c.final(len(u.data))
}

// continued is the session that x goes on with, and the chunk it brings.
func continued(x *sim.Exchange) (*upload, chunk, bool) {
	if !isOf("storage.objects.insert", x.Operation()) || x.Query("upload_id") == "" {
		return nil, chunk{}, false
	}
	u, bad := findUpload(x)
	if bad != nil || u.done != nil {
		return nil, chunk{}, false
	}
	c, ok := chunkOf(x, len(u.data))
	return u, c, ok && c.from <= len(u.data)
}
