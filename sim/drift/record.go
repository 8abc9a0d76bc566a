package drift

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heedproject/heed/sim"
)

const (
	maxBody = 1 << 20 // bytes of a body that are looked at
	maxRefs = 1 << 16 // values of answers that are remembered
)

// Recorder is a proxy that records. Make it with NewRecorder.
type Recorder struct {
	proxy *httputil.ReverseProxy
	keep  []string
	packs []sim.Pack

	mu   sync.Mutex
	out  io.Writer
	n    int
	err  error
	refs map[[sha256.Size]byte]string // by value: where an answer had it
}

// RecorderOptions say what is recorded and where. Upstream and Out must be set.
type RecorderOptions struct {
	Upstream *url.URL
	Out      io.Writer
	// Keep names parameters whose values are kept, because they say what is
	// asked for. Default: request, service, version.
	Keep []string
	// Packs know which segments of a path are names. Without one that is so
	// where they look like words.
	Packs []sim.Pack
	// Transport defaults to http.DefaultTransport.
	Transport http.RoundTripper
}

// NewRecorder makes a recorder.
func NewRecorder(o RecorderOptions) (*Recorder, error) {
	if o.Upstream == nil || o.Upstream.Host == "" || o.Upstream.Scheme != "http" && o.Upstream.Scheme != "https" {
		return nil, errors.New("drift: the upstream is no URL; give one such as https://api.example.com")
	}
	if o.Keep == nil {
		o.Keep = []string{"request", "service", "version"}
	}
	r := &Recorder{keep: o.Keep, packs: o.Packs, out: o.Out, refs: map[[sha256.Size]byte]string{}}
	r.proxy = &httputil.ReverseProxy{
		Transport: o.Transport, FlushInterval: -1, ModifyResponse: r.watch,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(o.Upstream)
			p.Out.Header.Del("Accept-Encoding") // the transport asks for gzip and undoes it
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "heed sim record: the upstream gave no answer", http.StatusBadGateway)
		},
	}
	return r, nil
}

// asked is what of a request is waiting for its answer.
type asked struct {
	request *http.Request
	body    *glimpse
}

type askedKey struct{}

// ServeHTTP hands one request through.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := &asked{request: req, body: &glimpse{}}
	if req.Body != nil {
		req.Body = a.body.of(req.Body, nil)
	}
	r.proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), askedKey{}, a)))
}

// watch looks at the answer as it passes, and records when it has ended.
func (r *Recorder) watch(resp *http.Response) error {
	a, ok := resp.Request.Context().Value(askedKey{}).(*asked)
	if !ok {
		return errors.New("drift: an answer without a request")
	}
	seen := &glimpse{}
	header := resp.Header.Clone()
	resp.Body = seen.of(resp.Body, func() { r.record(a, resp.StatusCode, header, seen) })
	return nil
}

// Done returns how many exchanges were recorded, and why not all were.
func (r *Recorder) Done() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n, r.err
}

func (r *Recorder) record(a *asked, status int, header http.Header, seen *glimpse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	req := a.request
	text, n := seen.seen()
	e := Exchange{
		N: r.n + 1, Method: req.Method, Path: r.path(req), Status: status,
		Header: map[string]string{}, Body: shapeOfBody(header.Get("Content-Type"), text, n),
	}
	if req.URL.RawQuery != "" {
		e.Query = r.refer(shapeOfForm(req.URL.RawQuery), req.URL.Query())
	}
	if sent, n := a.body.seen(); n > 0 {
		kind := req.Header.Get("Content-Type")
		e.RequestType, _, _ = mime.ParseMediaType(kind)
		e.Request = shapeOfBody(kind, sent, n)
		r.referBody(e.Request, sent)
	}
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
		r.remember(v, strconv.Itoa(r.n)+":", 0)
	}
}

// remember notes where an answer has which value.
func (r *Recorder) remember(v any, at string, depth int) {
	if depth > maxDepth || len(r.refs) >= maxRefs {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, one := range v {
			if isName(key) {
				r.remember(one, at+"/"+escape.Replace(key), depth+1)
			}
		}
	case []any:
		for i, one := range v {
			r.remember(one, at+"/"+strconv.Itoa(i), depth+1)
		}
	case string:
		r.note(v, at)
	case json.Number:
		r.note(v.String(), at)
	}
}

// escape writes a key as JSON pointers have it (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

func (r *Recorder) note(value, at string) {
	if len(value) < 2 || formatOf(value) == "string" && word().MatchString(value) {
		return // it is said too often to mean one thing
	}
	key := sha256.Sum256([]byte(value))
	if _, ok := r.refs[key]; !ok {
		r.refs[key] = at
	}
}

func (r *Recorder) ref(value string) string { return r.refs[sha256.Sum256([]byte(value))] }

// refer adds references and kept values to the shape of parameters.
func (r *Recorder) refer(s *Shape, values url.Values) *Shape {
	for name, of := range s.Fields {
		given := values.Get(name)
		if slices.ContainsFunc(r.keep, func(k string) bool { return strings.EqualFold(k, name) }) {
			of.Value = given
		}
		of.Ref = r.ref(given)
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
				if text, ok := one.(string); ok && slices.Contains(r.keep, key) {
					of.Value = text
				}
			}
		}
	case string:
		s.Ref = r.ref(v)
	case json.Number:
		s.Ref = r.ref(v.String())
	}
}

var (
	word = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z][A-Za-z_\-]{0,23}(\.[a-z]{1,5})?$`)
	})
	version = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(v[0-9]{1,3}(\.[0-9])?|[0-9]{4}-[0-9]{2}|[0-9]\.[0-9]{1,2})$`)
	})
)

// path takes the values out of the path.
func (r *Recorder) path(req *http.Request) string {
	parts := strings.Split(req.URL.Path, "/")
	named := r.names(req.Method, parts)
	for i, part := range parts {
		switch ref := r.ref(part); {
		case part == "" || named != nil && named[i]:
		case ref != "":
			parts[i] = "{" + ref + "}"
		case named == nil && (word().MatchString(part) || version().MatchString(part)):
		default:
			parts[i] = "{}"
		}
	}
	return strings.Join(parts, "/")
}

// names tells which segments are names in the first operation that fits; nil
// if none does.
func (r *Recorder) names(method string, parts []string) []bool {
	for _, p := range r.packs {
		for _, o := range p.Operations {
			m, path, _ := strings.Cut(o.Route, " ")
			route := strings.Split(path, "/")
			if m != method && m != "*" || len(route) != len(parts) {
				continue
			}
			named, fits := make([]bool, len(parts)), true
			for i, s := range route {
				named[i] = s == parts[i]
				fits = fits && (named[i] || strings.ContainsAny(s, "{*"))
			}
			if fits {
				return named
			}
		}
	}
	return nil
}

// glimpse keeps the begin of a body that passes. A request may still be on its
// way when its answer has ended.
type glimpse struct {
	mu   sync.Mutex
	text bytes.Buffer
	n    int64
}

// seen returns what passed so far, and how much of it there was.
func (g *glimpse) seen() (text []byte, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return bytes.Clone(g.text.Bytes()), g.n
}

func (g *glimpse) add(p []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n += int64(len(p))
	if room := maxBody - g.text.Len(); room > 0 {
		g.text.Write(p[:min(len(p), room)])
	}
}

func (g *glimpse) of(body io.ReadCloser, ended func()) io.ReadCloser {
	return &glimpsed{ReadCloser: body, g: g, ended: ended}
}

func shapeOfBody(contentType string, text []byte, n int64) *Shape {
	if n > maxBody {
		return &Shape{Kind: "long"}
	}
	return ShapeOf(contentType, text)
}

type glimpsed struct {
	io.ReadCloser
	g     *glimpse
	ended func() // nil: nobody wants to know
	once  sync.Once
}

// Read implements io.Reader.
func (b *glimpsed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.g.add(p[:n])
	return n, err
}

// Close implements io.Closer.
func (b *glimpsed) Close() error {
	err := b.ReadCloser.Close()
	if b.ended != nil {
		b.once.Do(b.ended)
	}
	return err
}
