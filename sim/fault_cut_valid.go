package sim

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
)

// serveCutValid leaves out the second half of the first list in a JSON
// answer, of the first elements of one name in an XML answer, or of the lines
// of a text, so that what is left still parses. Only a count in the answer, or
// knowledge of the data, tells.
func serveCutValid(x *Exchange) {
	an := x.operate()
	if short, ok := shorten(an.Body); ok {
		an.Body = short
	} else if short, ok := shortenXML(an.Body); ok {
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

// siblings are the children of one element that have one name.
type siblings struct {
	name  xml.Name
	spans [][2]int64 // where they stand
}

// shortenXML leaves out the second half of the first siblings of one name that
// are two or more.
func shortenXML(doc []byte) ([]byte, bool) {
	if text := bytes.TrimSpace(doc); len(text) == 0 || text[0] != '<' {
		return nil, false
	}
	d := xml.NewDecoder(bytes.NewReader(doc))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // names are ASCII
	var open []siblings                                                                  // by depth: the last run of children of the element there
	var begins []int64
	var found siblings
	for {
		at := d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(found.spans) > 1 {
			break
		}
		if err != nil {
			return nil, false
		}
		switch token := token.(type) {
		case xml.StartElement:
			begins = append(begins, at)
			open = append(open, siblings{})
			if depth := len(open) - 2; depth >= 0 && open[depth].name != token.Name {
				open[depth] = siblings{name: token.Name}
			}
		case xml.EndElement:
			depth := len(open) - 2
			if depth >= 0 {
				run := &open[depth]
				run.spans = append(run.spans, [2]int64{begins[depth+1], d.InputOffset()})
				if len(found.spans) < 2 && len(run.spans) > 1 || len(found.spans) > 0 && run.spans[0] == found.spans[0] {
					found = *run
				}
			}
			open, begins = open[:len(open)-1], begins[:len(begins)-1]
		}
	}
	n := len(found.spans)
	from, to := found.spans[n/2-1][1], found.spans[n-1][1]
	return append(bytes.Clone(doc[:from]), doc[to:]...), true
}
