package drift

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exchange is one request and its answer, without their values. A recording is
// a line of JSON for each, in the order in which the answers ended.
type Exchange struct {
	N int `json:"n"` // from 1
	// Method and Path. A segment of the path that is a value is {}, or a
	// reference such as {3:/id}.
	Method string `json:"method"`
	Path   string `json:"path"`
	// Query are the parameters.
	Query *Shape `json:"query,omitempty"`
	// Request is the shape of its body; RequestType its media type.
	Request     *Shape `json:"request,omitempty"`
	RequestType string `json:"request_type,omitempty"`
	Status      int    `json:"status"`
	// Header are names, with the shapes of values; the media type is kept.
	Header map[string]string `json:"header"`
	Body   *Shape            `json:"body"`
}

// A recording is bounded, and so is one exchange of it: it is compared in
// memory.
const (
	maxRecording = 64 << 20
	maxLine      = 4 << 20
)

// Read reads a recording. name is told in errors.
func Read(name string, in io.Reader) ([]Exchange, error) {
	var all []Exchange
	read := &io.LimitedReader{R: in, N: maxRecording + 1}
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan() && read.N > 0; n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var e Exchange
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s:%d: this is no exchange of a recording; record it anew with heed sim record", name, n)
		}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w; record it anew with heed sim record", name, n, err)
		}
		all = append(all, e)
	}
	switch err := lines.Err(); {
	case read.N <= 0:
		return nil, fmt.Errorf("%s: a recording of more than %d MiB is not compared: record less at once", name, maxRecording>>20)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: an exchange takes more than %d MiB: this is no recording", name, n, maxLine>>20)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

func (e *Exchange) check() error {
	switch {
	case e.N < 1 || e.Method == "" || strings.Trim(e.Method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return errors.New("number or method is missing")
	case !strings.HasPrefix(e.Path, "/") || strings.ContainsAny(e.Path, " ?#\r\n"):
		return errors.New("the path is none")
	case e.Status < 100 || e.Status > 599:
		return fmt.Errorf("there is no status %d", e.Status)
	case e.Body == nil:
		return errors.New("the shape of the body is missing")
	}
	for _, s := range []*Shape{e.Query, e.Request, e.Body} {
		if s.deeper(maxDepth + 2) {
			return errors.New("a shape is too deep")
		}
	}
	return nil
}

// deeper tells whether s has more than n levels.
func (s *Shape) deeper(n int) bool {
	if s == nil {
		return false
	}
	if n == 0 || s.Of.deeper(n-1) {
		return true
	}
	for _, f := range s.Fields {
		if f.deeper(n - 1) {
			return true
		}
	}
	return false
}
