package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
)

// imported is what came of an import.
type imported struct {
	Accepted   int         `json:"accepted"`
	Duplicates int         `json:"duplicates"`
	Erased     int         `json:"erased,omitempty"` // duplicates of calls that are gone, whose keys are still taken
	Refused    []badImport `json:"refused"`
}

type badImport struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// importAll takes envelopes in, one a line. Each is taken or refused by itself,
// and what was taken is told and audited also where the store, or the sender,
// fails on the way.
func (d *desk) importAll() error {
	out := imported{Refused: []badImport{}}
	n, err := d.takeAll(&out)
	failed := slog.Attr{} // which is left out
	if err != nil {
		failed = slog.String("error", mask.Error(err))
	}
	d.tellAudit("import", slog.Int("calls", out.Accepted), failed)
	if out.Accepted > 0 {
		d.Wake()
	}
	if err != nil {
		return &halted{error: err, imported: &out, before: fmt.Sprintf("Line %d stopped the import. Before it %d calls were taken in and %d were known; "+
			"the same import can be repeated", n, out.Accepted, out.Duplicates+out.Erased)}
	}
	reply(d.w, out)
	return nil
}

// takeAll takes lines in until their end, or returns which one failed.
func (d *desk) takeAll(out *imported) (n int, err error) {
	lines := bufio.NewReaderSize(d.r.Body, 64<<10)
	for n = 1; ; n++ {
		line, err := readLine(lines, d.Body/3*4+maxOrder)
		if err != nil && err != io.EOF {
			return n, wrong("line %d: %v", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := d.take1(n, line, out); err != nil {
				return n, err
			}
		}
		if err == io.EOF {
			return n, nil
		}
	}
}

// readLine reads a line of at most limit bytes.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); int64(len(line)) > limit {
			return nil, errors.New("it is longer than queue.max.body allows")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take1 takes one envelope in. An error ends the import: the store fails.
func (d *desk) take1(n int, line []byte, out *imported) error {
	e, err := queue.ParseEnvelope(line)
	if err != nil {
		out.Refused = append(out.Refused, badImport{n, strings.TrimPrefix(err.Error(), "read envelope: ")})
		return nil
	}
	c, why := d.callOf(&e)
	if why != "" {
		out.Refused = append(out.Refused, badImport{n, why})
		return nil
	}
	receipt, err := d.t.enqueue(d.r.Context(), c)
	if err != nil {
		return err
	}
	switch receipt.Admission {
	case queue.New:
		out.Accepted++
	case queue.Duplicate:
		if _, err := d.Store.Get(d.r.Context(), receipt.ID); errors.Is(err, queue.ErrNotFound) {
			out.Erased++
			return nil
		}
		out.Duplicates++
	case queue.Conflict:
		out.Refused = append(out.Refused, badImport{n, "the queue knows its id or its idempotency key with another request, such as what a call said before it was edited: " +
			"give it another of both, or leave the line out"})
	default:
		out.Refused = append(out.Refused, badImport{n, "the queue is full (queue.max.calls): purge calls, or import the line later"})
	}
	return nil
}

// callOf makes the call that an envelope describes, by the rules that hold for
// requests.
func (d *desk) callOf(e *queue.Envelope) (queue.Call, string) {
	said := *e
	said.Tenant = "" // here it is what the queue had, the client's name before the caller's word
	r, err := requestOf(&said, d.r)
	if err != nil {
		return queue.Call{}, err.Error()
	}
	for part := range strings.SplitSeq(e.Tenant, "/") {
		if e.Tenant != "" && part != "" && !word(part) {
			return queue.Call{}, "tenant has visible ASCII characters"
		}
	}
	x := exchange{g: d.g, table: d.t, r: r, route: d.t.routes[e.Endpoint]}
	if x.route == nil {
		return queue.Call{}, "there is no endpoint " + strconv.Quote(clip(e.Endpoint))
	}
	var bad *badHeader
	if x.asked, bad = x.route.readOptions(r.Header); bad != nil {
		return queue.Call{}, bad.name + " must be " + bad.want
	}
	u, wrong := x.mapped()
	if wrong != "" {
		return queue.Call{}, wrong
	}
	c, no := x.queued(u, e.Body)
	if no != nil {
		return queue.Call{}, no.Title
	}
	c.ID, c.Tenant = e.ID, e.Tenant
	if !e.Expires.IsZero() {
		c.Expires = e.Expires
	}
	return c, ""
}
