package classify

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Bounds of what Complete follows; a document beyond them is a Defect. They
// keep a hostile body from costing more than its own reading.
const (
	maxDepth = 10_000  // of nested containers or elements, as in encoding/json
	maxName  = 1 << 10 // of one XML name, in bytes
	maxNames = 1 << 20 // of all names of open XML elements, in bytes
)

// Defect says where a document stops being one. It tells nothing of the text.
type Defect struct {
	Format string // json or xml
	At     int64  // offset in bytes of the text as UTF-8, without byte order mark
	What   string // what is missing, or wrong
	Cut    bool   // the text ends too early; otherwise it is broken at At
}

// Error implements error.
func (d *Defect) Error() string {
	if d.Cut {
		return fmt.Sprintf("%s ends at byte %d: missing %s", d.Format, d.At, d.What)
	}
	return fmt.Sprintf("%s is broken at byte %d: %s", d.Format, d.At, d.What)
}

// Complete reads r to its end and tells whether it is a whole document of its
// media type, which may carry parameters: one JSON value, JSON lines (at a cut
// between two lines nothing can be seen), or well-formed XML with its root
// closed. Entities and document types are skipped, never expanded. A media type
// of another kind is not known, and r is not read.
//
// The error is a *Defect, or wraps what r returned. Memory is bounded by the
// depth of the document. A partial answer (206) is no document: do not ask.
func Complete(media string, r io.Reader) (known bool, err error) {
	k := kindOf(essenceOf(media))
	if k&(kindJSON|kindLines|kindXML) == 0 {
		return false, nil
	}
	return true, check(k, bufio.NewReaderSize(r, 32<<10))
}

// defect is Complete for bytes in hand.
func defect(k kind, b []byte) (d *Defect, known bool) {
	if k&(kindJSON|kindLines|kindXML) == 0 {
		return nil, false
	}
	d, _ = check(k, bufio.NewReader(bytes.NewReader(b))).(*Defect)
	return d, true
}

func check(k kind, r *bufio.Reader) error {
	in := &input{r: utf8Text(r)}
	if k == kindXML {
		x := xmlText{in: in, strict: true}
		return x.document()
	}
	j := jsonText{in: in}
	return j.documents(k == kindLines)
}

// input reads bytes and knows where it is.
type input struct {
	r   *bufio.Reader
	at  int64
	err error // why next found nothing
}

func (in *input) next() (byte, bool) {
	c, err := in.r.ReadByte()
	if err != nil {
		in.err = err
		return 0, false
	}
	in.at++
	return c, true
}

// back gives the last byte back.
func (in *input) back() {
	_ = in.r.UnreadByte()
	in.at--
}

// space skips white space and returns what follows.
func (in *input) space() (byte, bool) {
	for {
		c, ok := in.next()
		if !ok || !isSpace(c) {
			return c, ok
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// failure is what the source failed with; nil at its proper end.
func (in *input) failure() error {
	if in.err == nil || in.err == io.EOF {
		return nil
	}
	return fmt.Errorf("reading the body at byte %d: %w", in.at, in.err)
}

// cut is the error for a text that ends where what is due.
func (in *input) cut(format, what string) error {
	if err := in.failure(); err != nil {
		return err
	}
	return &Defect{Format: format, At: in.at, What: what, Cut: true}
}

// wrong is the error for the byte that was just read.
func (in *input) wrong(format, what string) error {
	return &Defect{Format: format, At: in.at - 1, What: what}
}
