package drift

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Options say how a recording is replayed.
type Options struct {
	// Values are used for parameters and fields with these names, where made-up
	// ones will not do.
	Values map[string]string
	// Header is sent with every request: the credential, for one.
	Header http.Header
}

// Difference is one thing that the pack does differently.
type Difference struct {
	Operation string // of the pack; "": it has none
	// Where is status, header NAME, or body and a path.
	Where string
	// Lacks tells that the pack leaves out what the provider has.
	Lacks          bool
	Recorded, Pack string
	// Count is how many exchanges show it, First the number of the first.
	Count, First int
}

// String tells it in one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: recorded %s, the pack has %s (exchange %d)", d.Where, d.Recorded, d.Pack, d.First)
}

// Report is what a comparison found.
type Report struct {
	Exchanges, Compared int
	Differences         []Difference
	// Skipped tells which exchanges were not compared, and why.
	Skipped []string
}

// Compare replays the recording against the pack.
func Compare(recording []Exchange, p sim.Pack, o Options) (Report, error) {
	api, err := sim.New(sim.World{
		Packs: []sim.Pack{p}, Limits: []rate.Limit{}, Clock: sim.Clock{Stepped: true}, JournalSize: 1,
	})
	if err != nil {
		return Report{}, err
	}
	defer api.Close()
	r := replay{Options: o, api: api, prefix: "/" + p.Name, answers: map[int]any{}, at: map[string]int{}}
	for i := range recording {
		if err := r.one(&recording[i]); err != nil {
			return Report{}, err
		}
	}
	r.report.Exchanges = len(recording)
	slices.SortStableFunc(r.report.Differences, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Operation, b.Operation), strings.Compare(a.Where, b.Where))
	})
	return r.report, nil
}

// replay is a comparison under way.
type replay struct {
	Options
	api     *sim.API
	prefix  string         // by which the pack is reached, whatever the path
	answers map[int]any    // the JSON of the pack's answers, by the number of the exchange
	at      map[string]int // where in the report a difference is
	report  Report
}

// one replays one exchange and notes what differs.
func (r *replay) one(e *Exchange) error {
	w := r.send(e)
	if w == nil {
		r.report.Skipped = append(r.report.Skipped, fmt.Sprintf("exchange %d: %s %s cannot be a request", e.N, e.Method, e.Path))
		return nil
	}
	operation := ""
	if j := r.api.Journal(); len(j.Entries) > 0 {
		operation = j.Entries[len(j.Entries)-1].Operation
	}
	if operation == "" {
		r.differ(e, Difference{Where: "operation", Lacks: true, Recorded: e.Method + " " + e.Path, Pack: "none such"})
		return nil
	}
	if e.Status/100 != 2 && w.status != e.Status && e.Status >= 200 { // the words for it are asked for by a step
		if err := r.api.SetSteps("* /**: " + strconv.Itoa(e.Status)); err != nil {
			return err
		}
		w = r.send(e)
		if err := r.api.SetSteps(""); err != nil {
			return err
		}
	}
	if e.Status/100 == 2 && w.status >= 400 {
		r.report.Skipped = append(r.report.Skipped, fmt.Sprintf(
			"exchange %d, %s: the pack refused what was made up for %s %s with %d: %.300s",
			e.N, operation, e.Method, e.Path, w.status, strings.TrimSpace(w.body.String())))
		return nil
	}
	if v, err := parseJSON(w.body.Bytes()); err == nil {
		r.answers[e.N] = v
	}
	r.report.Compared++
	note := func(d Difference) { d.Operation = operation; r.differ(e, d) }
	if w.status != e.Status {
		note(Difference{Where: "status", Recorded: strconv.Itoa(e.Status), Pack: strconv.Itoa(w.status)})
	}
	header := w.header
	compareHeader(e.Header, header, note)
	if e.Method != http.MethodHead && e.Body.Kind != "long" {
		compareShape("body", e.Body, ShapeOf(header.Get("Content-Type"), w.body.Bytes()), note)
	}
	return nil
}

// differ adds d to the report, or counts it there.
func (r *replay) differ(e *Exchange, d Difference) {
	key := fmt.Sprint(d.Operation, "\x00", d.Where, "\x00", d.Recorded, "\x00", d.Pack)
	i, ok := r.at[key]
	if !ok {
		i = len(r.report.Differences)
		r.at[key] = i
		d.First = e.N
		r.report.Differences = append(r.report.Differences, d)
	}
	r.report.Differences[i].Count++
}

// answer keeps what a handler writes.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush implements http.Flusher.
func (a *answer) Flush() {}

// send makes the request of e with made-up values; nil: it cannot be one.
func (r *replay) send(e *Exchange) *answer {
	target := (&url.URL{Path: r.prefix + r.path(e.Path)}).EscapedPath()
	if e.Query != nil {
		target += "?" + r.form(e.Query).Encode()
	}
	body := ""
	switch {
	case e.Request == nil:
	case e.Request.Kind == "form":
		body = r.form(e.Request).Encode()
	case e.Request.Kind != "empty":
		text, _ := json.Marshal(r.value("", e.Request)) // of values that JSON has
		body = string(text)
	}
	req, err := http.NewRequest(e.Method, target, strings.NewReader(body))
	if err != nil {
		return nil
	}
	if e.RequestType != "" {
		req.Header.Set("Content-Type", e.RequestType)
	}
	maps.Copy(req.Header, r.Header)
	w := &answer{header: http.Header{}}
	r.api.ServeHTTP(w, req)
	return w
}

// blank is a value that was taken out of a path. It is compiled when first used,
// as every start of heed would pay for it.
var blank = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{([0-9]+):([^{}]*)\}|\{\}`)
})

// path fills the blanks of a path.
func (r *replay) path(path string) string {
	return blank().ReplaceAllStringFunc(path, func(text string) string {
		if v, ok := r.follow(strings.Trim(text, "{}")); ok {
			return fmt.Sprint(v)
		}
		return cmp.Or(r.Values["{}"], "1")
	})
}

// follow finds what a reference means in the answers of the pack.
func (r *replay) follow(ref string) (any, bool) {
	number, pointer, ok := strings.Cut(ref, ":/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil, false
	}
	at, ok := r.answers[n]
	for part := range strings.SplitSeq(pointer, "/") {
		if !ok {
			return nil, false
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := at.(type) {
		case map[string]any:
			at, ok = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(v); ok {
				at = v[i]
			}
		default:
			ok = false
		}
	}
	switch at.(type) {
	case string, json.Number:
		return at, ok
	}
	return nil, false
}

// made are the values that are made up.
var made = map[string]any{
	"date-time": "2026-03-01T12:00:00Z", "date": "2026-03-01", "uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
	"uri": "https://example.com/", "email": "a@example.com", "digits": "1", "integer": 1, "number": 1.5, "boolean": true,
}

// value makes up a value of the shape for what is called name.
func (r *replay) value(name string, s *Shape) any {
	if v, ok := r.Values[name]; ok && name != "" && s.Fields == nil {
		if class(s.Kind) != "string" && json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
		return v
	}
	if v, ok := r.follow(s.Ref); ok {
		return v
	}
	if s.Value != "" {
		return s.Value
	}
	kind, _, _ := strings.Cut(s.Kind, "|")
	switch kind {
	case "object":
		m := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
			m[name] = r.value(name, s.Fields[name])
		}
		return m
	case "list":
		if s.Of == nil {
			return []any{}
		}
		return []any{r.value(name, s.Of)}
	case "null":
		return nil
	}
	if v, ok := made[kind]; ok {
		return v
	}
	return "text"
}

func (r *replay) form(s *Shape) url.Values {
	v := url.Values{}
	for name, of := range s.Fields {
		switch one := r.value(name, of).(type) {
		case json.RawMessage:
			v.Set(name, string(one))
		default:
			v.Set(name, fmt.Sprint(one))
		}
	}
	return v
}

// incidental header fields come from what stands between, or tell nothing of
// the API.
var incidental = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(Age|Alt-Svc|Cache-Control|Connection|Content-Encoding|Content-Length|Content-Security-Policy.*|` +
		`Cross-Origin-.*|Access-Control-.*|CF-.*|Date|Expect-CT|Expires|Keep-Alive|Nel|P3p|Permissions-Policy|Pragma|Referrer-Policy|Report-To|` +
		`Reporting-Endpoints|Server|Server-Timing|Set-Cookie|Strict-Transport-Security|Transfer-Encoding|Vary|Via|X-Cache.*|X-Content-Type-Options|` +
		`X-Dns-Prefetch-Control|X-Download-Options|X-Frame-Options|X-Permitted-Cross-Domain-Policies|X-Powered-By|X-Runtime|X-Served-By|X-Timer|X-Xss-Protection)$`)
})

func compareHeader(recorded map[string]string, pack http.Header, note func(Difference)) {
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		values := pack[http.CanonicalHeaderKey(name)]
		switch {
		case incidental().MatchString(name):
		case values == nil:
			note(Difference{Where: "header " + name, Lacks: true, Recorded: recorded[name], Pack: "none"})
		case strings.EqualFold(name, "Content-Type"):
			if media, _, _ := mime.ParseMediaType(values[0]); media != recorded[name] {
				note(Difference{Where: "header " + name, Recorded: recorded[name], Pack: cmp.Or(media, "none")})
			}
		case !compatible(recorded[name], formatOf(values[0])):
			note(Difference{Where: "header " + name, Recorded: recorded[name], Pack: formatOf(values[0])})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pack)) {
		if _, ok := recorded[name]; !ok && !incidental().MatchString(name) && len(pack[name]) > 0 {
			note(Difference{Where: "header " + name, Recorded: "none", Pack: formatOf(pack[name][0])})
		}
	}
}

// compareShape tells where b, of the pack, has another shape than a.
func compareShape(at string, a, b *Shape, note func(Difference)) {
	if a == nil || b == nil {
		return // of an empty list nobody knows
	}
	if !compatible(a.Kind, b.Kind) {
		note(Difference{Where: at, Recorded: a.Kind, Pack: b.Kind})
		return
	}
	compareShape(at+"[]", a.Of, b.Of, note)
	if a.Fields == nil || b.Fields == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.Fields)) {
		of := b.Fields[name]
		switch {
		case of != nil:
			compareShape(at+"."+name, a.Fields[name], of, note)
		case name != "*" && !a.Fields[name].Sometimes:
			note(Difference{Where: at + "." + name, Lacks: true, Recorded: a.Fields[name].Kind, Pack: "none"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Fields)) {
		if a.Fields[name] == nil && a.Fields["*"] == nil && name != "*" && !b.Fields[name].Sometimes {
			note(Difference{Where: at + "." + name, Recorded: "none", Pack: b.Fields[name].Kind})
		}
	}
}

// compatible tells whether values of both kinds can be of one field: null with
// all, and numbers or texts with one another where no format is at stake.
func compatible(a, b string) bool {
	for x := range strings.SplitSeq(a, "|") {
		for y := range strings.SplitSeq(b, "|") {
			if x == "null" || y == "null" || class(x) == class(y) {
				return true
			}
		}
	}
	return false
}

func class(kind string) string {
	switch kind {
	case "digits", "email":
		return "string"
	case "integer":
		return "number"
	}
	return kind
}
