package drift

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
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
	keep  []string // nil: what says which operation of an OGC service is asked for
	packs []sim.Pack
	words map[string]bool // known parts of paths

	mu   sync.Mutex
	out  io.Writer
	n    int
	err  error
	refs map[[sha256.Size]byte]place // by value: where an answer had it
}

// RecorderOptions say what is recorded and where. Upstream and Out must be set.
type RecorderOptions struct {
	Upstream *url.URL
	Out      io.Writer
	// Keep names parameters whose values are kept, because they say what is
	// asked for. Default: request, service and version, where they have a value
	// that the services of the OGC have for them, such as GetFeature.
	Keep []string
	// Packs know which segments of a path are names: those of the route that
	// fits.
	Packs []sim.Pack
	// Words are segments that are names where no route fits, beside the words of
	// the routes of Packs. All others, but for versions, are taken for values.
	Words []string
	// Transport defaults to http.DefaultTransport.
	Transport http.RoundTripper
}

// NewRecorder makes a recorder.
func NewRecorder(o RecorderOptions) (*Recorder, error) {
	if o.Upstream == nil || o.Upstream.Host == "" || o.Upstream.Scheme != "http" && o.Upstream.Scheme != "https" {
		return nil, errors.New("drift: the upstream is no URL; give one such as https://api.example.com")
	}
	r := &Recorder{keep: o.Keep, packs: o.Packs, words: map[string]bool{}, out: o.Out, refs: map[[sha256.Size]byte]place{}}
	for _, w := range append(Words(o.Packs), o.Words...) {
		r.words[w] = true
	}
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
	if err != nil {
		b.end() // before the client has the last of it, and asks on
	}
	return n, err
}

// Close implements io.Closer.
func (b *glimpsed) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

func (b *glimpsed) end() {
	if b.ended != nil {
		b.once.Do(b.ended)
	}
}
