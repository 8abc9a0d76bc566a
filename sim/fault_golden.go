package sim

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
)

// serveGolden gives the answer of a golden exchange of the provider, or with
// PROFILE/NAME that of any profile, cut short where the exchange says so; one
// that shows a failure without an answer fails like it. Nothing happened. What
// the exchange is expected to mean is not read here.
func serveGolden(x *Exchange) {
	e, ok := x.pack.golden(x.step.said)
	switch {
	case !ok:
		x.refuse(Refusal{Kind: BadRequest, Detail: "this provider has no golden exchange " + strconv.Quote(x.step.said)})
	case e.failure == "header_timeout":
		serveHang(x)
	case e.failure != "": // of those that never reach a server the reset comes nearest
		serveReset(x)
	case e.cut >= 0:
		x.cut(e.answer, e.cut)
	default:
		x.write(e.answer)
	}
}

// goldenExchange is the half of a golden exchange that a provider plays.
type goldenExchange struct {
	name    string
	answer  Answer
	cut     int    // the connection ends after so many bytes; -1: it does not
	failure string // in place of an answer
}

// goldens are the exchanges of each profile, read when they are asked for.
var goldens = func() map[string]func() ([]goldenExchange, error) {
	all := map[string]func() ([]goldenExchange, error){}
	files, _ := golden.Files.ReadDir(".") // which is embedded
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".yaml")
		all[name] = sync.OnceValues(func() ([]goldenExchange, error) { return readGolden(name) })
	}
	return all
}()

// profiles are those whose exchanges the step golden(NAME) takes for p.
func (p *pack) profiles() []string {
	if names := strings.Fields(p.Golden); len(names) > 0 {
		return names
	}
	return []string{p.Name}
}

// golden finds the exchange that a step names.
func (p *pack) golden(said string) (goldenExchange, bool) {
	for _, profile := range p.profiles() {
		if e, ok := goldenOf(profile, said); ok {
			return e, true
		}
	}
	profile, name, _ := strings.Cut(said, "/")
	return goldenOf(profile, name)
}

func goldenOf(profile, name string) (goldenExchange, bool) {
	read, ok := goldens[profile]
	if !ok {
		return goldenExchange{}, false
	}
	all, _ := read() // what cannot be read has none
	i := slices.IndexFunc(all, func(e goldenExchange) bool { return e.name == name })
	if i < 0 {
		return goldenExchange{}, false
	}
	return all[i], true
}

// lacksGolden says that no pack has this exchange, and which are like it.
func (a *realm) lacksGolden(said string) (message, remedy string) {
	var known []string
	for _, p := range a.packs {
		if _, ok := p.golden(said); ok {
			return "", ""
		}
		for _, profile := range p.profiles() {
			known = append(known, goldenNames(profile, "")...)
		}
	}
	if profile, _, ok := strings.Cut(said, "/"); ok && goldens[profile] != nil {
		known = goldenNames(profile, profile+"/")
	}
	return fmt.Sprintf("there is no golden exchange %q", said), suggest(said, known,
		"golden(PROFILE/NAME) serves those of a profile, one of "+strings.Join(slices.Sorted(maps.Keys(goldens)), ", "))
}

func goldenNames(profile, before string) (names []string) {
	read, ok := goldens[profile]
	if !ok {
		return nil
	}
	all, _ := read()
	for _, e := range all {
		names = append(names, before+e.name)
	}
	return names
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
		e := goldenExchange{name: textOf(n, "name"), cut: -1, failure: textOf(n, "failure")}
		r := n.Get("response")
		if r == nil {
			all = append(all, e)
			continue
		}
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
