package sierra

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/heedproject/heed/sim"
)

// oversized has more items than the 99,999 bytes of ISO 2709 hold.
const oversized = "1000007"

// summary is what an export answers.
type summary struct {
	File   string `json:"file"`
	Input  int    `json:"inputRecords"`
	Output int    `json:"outputRecords"`
	Errors int    `json:"errors"`
}

// export writes the bibs that were asked for into a file. Deleted ones go in
// and do not come out; one that is too large comes out cut, with a 200.
func export(x *sim.Exchange) sim.Answer {
	w, bad := wishOf(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	var s summary
	var file bytes.Buffer
	all := bibs(x)
	skip := w.offset
	for id := range w.among(all.IDs()) {
		b, ok := all.Get(id)
		if !ok || !w.takes(b) {
			continue
		}
		if skip--; skip >= 0 {
			continue
		}
		s.Input++
		if b.ID == oversized {
			s.Errors++
		}
		if !b.Deleted {
			s.Output++
			file.Write(marc(b))
		}
		if s.Input == w.limit {
			break
		}
	}
	if s.Input == 0 {
		return failed(x, fault{Code: 135, Status: 500, Name: "External process failed", Description: "No records exported"})
	}
	name := x.ID("")
	sim.Rows[[]byte](x, "files").Put(name, file.Bytes())
	s.File = x.URL(root + "/bibs/marc/files/" + name)
	return sim.JSON(200, s)
}

func exported(x *sim.Exchange) sim.Answer {
	file, ok := sim.Rows[[]byte](x, "files").Get(x.Value("file"))
	if !ok {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	return sim.Answer{Status: 200, Fields: [][2]string{{"Content-Type", "application/marc"}}, Body: file}
}

// marc writes a bib as ISO 2709 has it: a leader, a directory of tag, length
// and place, and the fields.
func marc(b bib) []byte {
	const fieldEnd, recordEnd = "\x1e", "\x1d"
	var directory, data strings.Builder
	for _, f := range [][2]string{
		{"001", b.ID},
		{"100", "1 \x1fa" + b.Author},
		{"245", "10\x1fa" + b.Title},
	} {
		text := f[1] + fieldEnd
		fmt.Fprintf(&directory, "%s%04d%05d", f[0], len(text), data.Len())
		data.WriteString(text)
	}
	const leader = 24
	base := leader + directory.Len() + len(fieldEnd)
	whole := base + data.Len() + len(recordEnd)
	return fmt.Appendf(nil, "%05dnam a22%05d   4500%s%s%s%s", whole, base, directory.String(), fieldEnd, data.String(), recordEnd)
}
