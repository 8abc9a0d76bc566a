package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// sniffed is how much of a body is looked at to tell what it is.
const sniffed = 64 << 10

// mediaType is what a body is said to be that nobody has named: JSON if it is,
// as far as it was looked at, and else text. curl calls any data a form, which is
// wrong for most APIs.
func mediaType(head []byte) string {
	if len(head) > sniffed && beginsJSON(head[:sniffed]) || len(head) <= sniffed && json.Valid(head) {
		return "application/json"
	}
	return "text/plain"
}

// beginsJSON tells whether text is the beginning of one JSON document.
func beginsJSON(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF && depth > 0
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 { // it has ended, and more follows
			return len(bytes.TrimSpace(text[d.InputOffset():])) == 0
		}
	}
}

// setType names what the body of r is, where nobody has.
func setType(r *http.Request, begin []byte) {
	if _, said := r.Header["Content-Type"]; !said && len(begin) > 0 {
		r.Header.Set("Content-Type", mediaType(begin))
	}
}

// head reads the beginning of a body, one byte more than is looked at.
func head(in io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(in, sniffed+1))
}
