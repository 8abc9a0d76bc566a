package sim

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
)

// serveGolden gives the answer of a golden exchange of the provider, cut short
// where the exchange says so. Nothing happened. What the exchange is expected
// to mean is not read here.
func serveGolden(x *Exchange) {
	for _, e := range x.own.realm.golden(x.pack) {
		if e.name == x.step.said {
			if e.cut >= 0 {
				x.cut(e.answer, e.cut)
				return
			}
			x.write(e.answer)
			return
		}
	}
	x.refuse(Refusal{Kind: BadRequest, Detail: "this provider has no golden exchange " + strconv.Quote(x.step.said)})
}

// goldenExchange is the half of a golden exchange that a provider plays.
type goldenExchange struct {
	name   string
	answer Answer
	cut    int // the connection ends after so many bytes; -1: it does not
}

// golden reads the exchanges of p once.
func (a *realm) golden(p *pack) []goldenExchange {
	p.goldenOnce.Do(func() {
		names := strings.Fields(p.Golden)
		if len(names) == 0 {
			names = []string{p.Name}
		}
		for _, name := range names {
			all, err := readGolden(name)
			p.goldens, p.goldenErr = append(p.goldens, all...), errors.Join(p.goldenErr, err)
		}
	})
	return p.goldens
}

func readGolden(name string) ([]goldenExchange, error) {
	data, err := golden.Files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there are no golden exchanges of %s", name)
	}
	doc, problems := sheet.ReadYAML(name+".yaml", data)
	if len(problems) > 0 {
		return nil, fmt.Errorf("golden exchanges: %s", problems[0])
	}
	list := doc.Get("exchanges")
	if list == nil {
		return nil, fmt.Errorf("golden exchanges of %s: there is no list", name)
	}
	var all []goldenExchange
	for _, n := range list.Items {
		r := n.Get("response")
		if r == nil { // it shows a failure without an answer
			continue
		}
		e := goldenExchange{name: textOf(n, "name"), cut: -1}
		if e.answer, err = goldenAnswer(r); err != nil {
			return nil, fmt.Errorf("golden exchange %s of %s: %w", e.name, name, err)
		}
		if text := textOf(r, "cut"); text != "" {
			if e.cut, err = strconv.Atoi(text); err != nil {
				return nil, fmt.Errorf("golden exchange %s of %s: its cut is no number", e.name, name)
			}
		}
		all = append(all, e)
	}
	return all, nil
}

func goldenAnswer(r *sheet.Node) (an Answer, err error) {
	if an.Status, err = strconv.Atoi(textOf(r, "status")); err != nil {
		return an, errors.New("its status is no number")
	}
	an.Body = []byte(textOf(r, "body"))
	if text := textOf(r, "base64"); text != "" {
		if an.Body, err = base64.StdEncoding.DecodeString(text); err != nil {
			return an, errors.New("its body is no base64")
		}
	}
	an.Set("Content-Type", "") // what the file does not name is not sent
	if h := r.Get("header"); h != nil {
		for _, m := range h.Members {
			lines := m.Value.Items
			if m.Value.Kind == sheet.Scalar {
				lines = []*sheet.Node{m.Value}
			}
			for i, line := range lines {
				if i == 0 {
					an.Set(m.Key.Text, line.Text)
				} else {
					an.More = append(an.More, [2]string{m.Key.Text, line.Text})
				}
			}
		}
	}
	if textOf(r, "encoding") == "gzip" {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(an.Body) // a buffer takes all
		_ = z.Close()
		an.Body = b.Bytes()
		an.Set("Content-Encoding", "gzip")
	}
	return an, nil
}

func textOf(n *sheet.Node, name string) string {
	if v := n.Get(name); v != nil {
		return v.Text
	}
	return ""
}

// names of the golden exchanges, for a message.
func goldenNames(all []goldenExchange) string {
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.name
	}
	return strings.Join(names, "; ")
}
