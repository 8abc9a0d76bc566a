package sim

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// serveTruncate promises the whole answer by Content-Length, sends half of it
// and closes: the client sees an unexpected end, if it counts.
func serveTruncate(x *Exchange) {
	an := x.operate()
	x.cut(an, len(an.Body)/2)
}

// serveCut does the same after at= bytes (default 1).
func serveCut(x *Exchange) { x.cut(x.operate(), x.step.count("at", 1)) }

func (x *Exchange) cut(an Answer, at int) {
	if at >= len(an.Body) {
		x.write(an)
		return
	}
	an.Set("Content-Length", strconv.Itoa(len(an.Body)))
	an.Body, an.Pace = an.Body[:at], Pace{}
	x.write(an)
	_ = x.flush() // so that what was written arrives; net/http ends the connection
}

// serveCutClean sends only the first at= bytes (default: half) and a
// Content-Length that agrees: no client can see it by counting.
func serveCutClean(x *Exchange) {
	an := x.operate()
	an.Body = an.Body[:min(x.step.count("at", len(an.Body)/2), len(an.Body))]
	x.write(an)
}

// serveCutValid leaves out the second half of the first list in a JSON
// answer, or of the lines of a text, so that what is left still parses. Only
// a count in the answer, or knowledge of the data, tells.
func serveCutValid(x *Exchange) {
	an := x.operate()
	if short, ok := shorten(an.Body); ok {
		an.Body = short
	} else if lines := bytes.SplitAfter(an.Body, []byte("\n")); len(lines) > 2 {
		an.Body = bytes.Join(lines[:len(lines)/2], nil)
	}
	x.write(an)
}

// shorten halves the first list of two or more in a JSON document.
func shorten(doc []byte) ([]byte, bool) {
	if !json.Valid(doc) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	for {
		token, err := d.Token()
		if err != nil {
			return nil, false
		}
		if token != json.Delim('[') {
			continue
		}
		begin := d.InputOffset()
		var ends []int64
		look := json.NewDecoder(bytes.NewReader(doc[begin-1:]))
		_, _ = look.Token() // the bracket, which is there
		for look.More() {
			var one json.RawMessage
			if look.Decode(&one) != nil {
				return nil, false
			}
			ends = append(ends, begin-1+look.InputOffset())
		}
		if len(ends) < 2 {
			continue
		}
		return append(append([]byte(nil), doc[:ends[len(ends)/2-1]]...), doc[ends[len(ends)-1]:]...), true
	}
}
