package drift

import (
	"crypto/sha256"
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
)

// record writes the exchange down, and remembers which values its answer had.
func (r *Recorder) record(a *asked, status int, header http.Header, seen *glimpse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, n := seen.seen()
	e, data := r.request(a)
	e.Status, e.Header = status, map[string]string{}
	e.Body = shapeOfBody(header.Get("Content-Type"), text, n).without(data)
	for name, values := range header {
		e.Header[name] = formatOf(values[0])
	}
	if media, _, err := mime.ParseMediaType(header.Get("Content-Type")); err == nil {
		e.Header["Content-Type"] = media
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = r.out.Write(append(line, '\n'))
	}
	if err != nil {
		if r.err == nil {
			r.err = fmt.Errorf("drift: the recording could not be written: %w", err)
		}
		return
	}
	r.n++
	if v, err := parseJSON(text); err == nil {
		r.remember(v, strconv.Itoa(r.n)+":", data)
	}
}

// request is what of a request is recorded, and the values of its path: a key of
// a body that is one of them is no name of a field.
func (r *Recorder) request(a *asked) (e Exchange, data map[string]bool) {
	req := a.request
	data = map[string]bool{}
	path, values := r.path(req.Method, req.URL.Path)
	for _, v := range values {
		data[v] = true
	}
	e = Exchange{N: r.n + 1, Method: req.Method, Path: path}
	if req.URL.RawQuery != "" {
		e.Query = r.refer(shapeOfForm(req.URL.RawQuery), req.URL.Query())
	}
	if sent, n := a.body.seen(); n > 0 {
		kind := req.Header.Get("Content-Type")
		e.RequestType, _, _ = mime.ParseMediaType(kind)
		e.Request = shapeOfBody(kind, sent, n)
		r.referBody(e.Request, sent)
		e.Request = e.Request.without(data)
	}
	return e, data
}

// place is where an answer had a value: the number of the exchange and a JSON
// pointer. A weak one is a word that may have been meant otherwise elsewhere.
type place struct {
	at   string
	weak bool
}

// remember notes where an answer has which value.
func (r *Recorder) remember(v any, at string, data map[string]bool) {
	if strings.Count(at, "/") > maxDepth || len(r.refs) >= maxRefs {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if isName(key) && !data[key] && !isLoose(key) {
				r.remember(v[key], at+"/"+escape.Replace(key), data)
			}
		}
	case []any:
		for i, one := range v {
			r.remember(one, at+"/"+strconv.Itoa(i), data)
		}
	case string:
		r.note(v, at)
	case json.Number:
		r.note(v.String(), at)
	}
}

// escape writes a key as JSON pointers have it (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

var (
	word = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z][A-Za-z_\-]{0,23}(\.[a-z]{1,5})?$`)
	})
	// identifier is the name of a field whose value means one thing.
	identifier = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:/|[_-])(?:id|key|login|slug|token|uuid)$|[a-z](?:Id|ID|Key|Token|UUID)$`)
	})
	// ogc is what the services of the OGC have for request, service and version.
	ogc = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:w[cfmp]s|wmts|csw|(?:get|describe|list|lock|create|drop)[a-z]{1,24}|transaction|execute|[0-9](?:\.[0-9]{1,2}){1,2})$`)
	})
)

// note notes where value stands. A word that is no identifier is said too often
// to mean one thing.
func (r *Recorder) note(value, at string) {
	if len(value) < 2 {
		return
	}
	weak := formatOf(value) == "string" && word().MatchString(value) && !identifier().MatchString(at)
	key := sha256.Sum256([]byte(value))
	if had, ok := r.refs[key]; !ok || had.weak && !weak {
		r.refs[key] = place{at, weak}
	}
}

// ref is where an answer had value; "": nowhere. In a path, whose values are
// seldom other than identifiers, a weak place will do.
func (r *Recorder) ref(value string, inPath bool) string {
	p := r.refs[sha256.Sum256([]byte(value))]
	if p.weak && !inPath {
		return ""
	}
	return p.at
}

// kept tells whether the value of the parameter says what is asked for.
func (r *Recorder) kept(name, value string) bool {
	if r.keep != nil {
		return slices.ContainsFunc(r.keep, func(k string) bool { return strings.EqualFold(k, name) })
	}
	switch strings.ToLower(name) {
	case "request", "service", "version":
		return ogc().MatchString(value)
	}
	return false
}

// refer adds references and kept values to the shape of parameters.
func (r *Recorder) refer(s *Shape, values url.Values) *Shape {
	for name, of := range s.Fields {
		given := values.Get(name)
		if r.kept(name, given) {
			of.Value = given
		}
		of.Ref = r.ref(given, false)
	}
	return s
}

func (r *Recorder) referBody(s *Shape, body []byte) {
	if s.Kind == "form" {
		form, _ := url.ParseQuery(string(body))
		r.refer(s, form)
		return
	}
	if v, err := parseJSON(body); err == nil {
		r.referJSON(s, v)
	}
}

func (r *Recorder) referJSON(s *Shape, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, one := range v {
			if of := s.Fields[key]; of != nil {
				r.referJSON(of, one)
				if text, ok := one.(string); ok && r.kept(key, text) {
					of.Value = text
				}
			}
		}
	case string:
		s.Ref = r.ref(v, false)
	case json.Number:
		s.Ref = r.ref(v.String(), false)
	}
}
