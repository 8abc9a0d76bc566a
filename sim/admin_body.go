package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/heedproject/heed/provider/sheet"
)

// readBody reads the JSON of an admin page into b: every name must be known,
// and every problem is told with its place.
func readBody(body []byte, b sheet.Block) []sheet.Problem {
	t := tree{text: body, in: json.NewDecoder(bytes.NewReader(body))}
	t.in.UseNumber()
	n, err := t.node()
	if err == nil && t.next() < len(body) {
		err = errors.New("something follows the end")
	}
	r := sheet.Reader{}
	if err != nil {
		r.Problem(t.at(t.in.InputOffset()), "", "send one object of JSON", "the body cannot be read as JSON: %s", err)
		return r.Problems
	}
	b.Read(&r, n, "")
	return r.Problems
}

// tree makes nodes of JSON.
type tree struct {
	text []byte
	in   *json.Decoder
}

// next is where the next token begins.
func (t *tree) next() int {
	from := int(t.in.InputOffset())
	return len(t.text) - len(bytes.TrimLeft(t.text[from:], " \t\r\n,:"))
}

// at is a place as people count it.
func (t *tree) at(offset int64) *sheet.Node {
	before := t.text[:min(int(offset), len(t.text))]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return &sheet.Node{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[begin:]) + 1}
}

func (t *tree) node() (*sheet.Node, error) {
	n := t.at(int64(t.next()))
	token, err := t.in.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n.Kind = sheet.Sequence
		if v == '{' {
			n.Kind = sheet.Mapping
		}
		return n, t.fill(n)
	case string:
		n.Text = v
	default:
		text, _ := json.Marshal(v) // a number, true, false or null
		n.Text, n.Plain = string(text), true
	}
	return n, nil
}

// fill reads what is in an object or a list, and its end.
func (t *tree) fill(n *sheet.Node) error {
	for t.in.More() {
		one, err := t.node()
		if err != nil {
			return err
		}
		if n.Kind == sheet.Sequence {
			n.Items = append(n.Items, one)
			continue
		}
		if n.Get(one.Text) != nil {
			return errors.New("a name is there twice")
		}
		value, err := t.node()
		if err != nil {
			return err
		}
		n.Members = append(n.Members, sheet.Member{Key: one, Value: value})
	}
	_, err := t.in.Token()
	return err
}

// refuse answers 400 with every problem of err.
func refuse(err error) Answer {
	var all []sheet.Problem
	var doc placed
	if own, ok := errors.AsType[*Error](err); ok {
		for _, p := range own.Problems {
			all = append(all, sheet.Problem{Line: p.Line, Column: p.Column, Path: p.Path, Message: p.Message, Remedy: p.Remedy})
		}
	} else if errors.As(err, &doc) {
		all = doc.All()
	}
	return refuseAll(strings.TrimPrefix(err.Error(), "sim: "), all)
}

// placed is an error that knows all places where a document is wrong.
type placed interface{ All() []sheet.Problem }

// place is a problem as the admin pages tell it.
type place struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// refuseAll tells the problems, and the place of the first once more beside
// the detail, for those who read no lists.
func refuseAll(detail string, all []sheet.Problem) Answer {
	told := struct {
		Title    string  `json:"title"`
		Status   int     `json:"status"`
		Detail   string  `json:"detail"`
		Line     int     `json:"line,omitempty"`
		Column   int     `json:"column,omitempty"`
		Remedy   string  `json:"remedy,omitempty"`
		Problems []place `json:"problems,omitempty"`
	}{Title: "Bad Request", Status: http.StatusBadRequest, Detail: detail}
	for i, p := range all {
		if i == 0 {
			told.Line, told.Column, told.Remedy = p.Line, p.Column, p.Remedy
		}
		told.Problems = append(told.Problems, place{p.Line, p.Column, p.Path, p.Message, p.Remedy})
	}
	return JSON(http.StatusBadRequest, told).With("Content-Type", "application/problem+json")
}

// refuseBody does so for the problems of a body; example shows a good one.
func refuseBody(example string, all []sheet.Problem) Answer {
	lines := make([]string, len(all))
	for i, p := range all {
		p.File = "body"
		lines[i] = p.String()
	}
	return refuseAll(strings.Join(lines, "\n")+"\nsend such as "+example, all)
}
