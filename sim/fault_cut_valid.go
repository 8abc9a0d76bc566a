package sim

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
)

// serveCutValid leaves out the second half of the first list in a JSON answer,
// or where there is none of two or more of the members of the first object; of
// the first elements of one name in an XML answer, or of the children of its
// root; or of the lines of a text: so that what is left still parses. Only a
// count in the answer, or knowledge of the data, tells. Where nothing can be
// left out the journal says so.
func serveCutValid(x *Exchange) {
	an := x.operate()
	short, ok := shorten(an.Body)
	if !ok {
		short, ok = shortenXML(an.Body)
	}
	if lines := bytes.SplitAfter(an.Body, []byte("\n")); !ok && !json.Valid(an.Body) && !isXML(an.Body) && len(lines) > 2 {
		short, ok = bytes.Join(lines[:len(lines)/2], nil), true
	}
	if ok {
		an.Body = short
	} else {
		x.entry.note = sentWhole
	}
	x.write(an)
}

// shorten leaves out a part of a JSON document: half of the first list of two
// or more, else half of the first object, else all of the first list or object
// that has anything.
func shorten(doc []byte) ([]byte, bool) {
	if !json.Valid(doc) {
		return nil, false
	}
	for _, want := range []struct {
		kind json.Delim
		most int // is too few
	}{{'[', 1}, {'{', 1}, {'{', 0}, {'[', 0}} {
		if short, ok := halve(doc, want.kind, want.most); ok {
			return short, true
		}
	}
	return nil, false
}

// halve leaves out the second half, at least one, of the first list or object
// that has more than few parts.
func halve(doc []byte, kind json.Delim, few int) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(doc))
	for {
		token, err := d.Token()
		if err != nil {
			return nil, false
		}
		if token != kind {
			continue
		}
		begin := d.InputOffset()
		ends := partsOf(doc, begin)
		if len(ends) <= few+1 {
			continue
		}
		n := len(ends) - 1
		return append(bytes.Clone(doc[:ends[n/2]]), doc[ends[n]:]...), true
	}
}

// partsOf are the ends of what is in the list or object that opens before
// begin, which itself is the first.
func partsOf(doc []byte, begin int64) []int64 {
	look := json.NewDecoder(bytes.NewReader(doc[begin-1:]))
	open, _ := look.Token() // which is there
	ends := []int64{begin}
	for look.More() {
		if open == json.Delim('{') {
			_, _ = look.Token() // the name of a member
		}
		var one json.RawMessage
		if look.Decode(&one) != nil {
			return nil
		}
		ends = append(ends, begin-1+look.InputOffset())
	}
	return ends
}

// siblings are the children of one element that have one name.
type siblings struct {
	name  xml.Name
	spans [][2]int64 // where they stand
}

func isXML(doc []byte) bool {
	text := bytes.TrimSpace(doc)
	return len(text) > 0 && text[0] == '<'
}

// shortenXML leaves out the second half of the first siblings of one name that
// are two or more, or else of the children of the root.
func shortenXML(doc []byte) ([]byte, bool) {
	if !isXML(doc) {
		return nil, false
	}
	d := xml.NewDecoder(bytes.NewReader(doc))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // names are ASCII
	var open []siblings                                                                  // by depth: the last run of children of the element there
	var begins []int64
	var found, children siblings
	for {
		at := d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(found.spans)+len(children.spans) > 0 {
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
			if depth == 0 {
				children.spans = append(children.spans, [2]int64{begins[1], d.InputOffset()})
			}
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
	if len(found.spans) < 2 {
		found = children
	}
	n := len(found.spans)
	from, to := found.spans[0][0], found.spans[n-1][1]
	if n > 1 {
		from = found.spans[n/2-1][1]
	}
	return append(bytes.Clone(doc[:from]), doc[to:]...), true
}
