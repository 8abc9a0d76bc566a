package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

type callsExportCmd struct {
	callFilter
	deskFlags
	IDs    []string `arg:"" optional:"" name:"id" help:"The calls; without any, those that the filters select."`
	Why    string   `placeholder:"TEXT" help:"Why they are taken out; the audit log keeps it. Needed."`
	Output string   `short:"o" placeholder:"FILE" help:"Write to a file that only you can read, instead of stdout."`
	Force  bool     `help:"Put the export in the place of a file that is there."`
	DryRun bool     `help:"Only say how many calls that would be."`
}

// Help is what heed calls export --help says beside the flags.
func (callsExportCmd) Help() string {
	return `One envelope a line: the whole call in the clear, as heed calls import and POST /_heed/calls take it. Without --state it takes what is queued, dead, quarantined or unknown, but no write that may have been carried out and cannot be repeated without harm: whoever imports it sends it. Such a write must be named, or asked for with --state unknown. Callbacks stay here. Calls whose request is erased, as after a success, are left out. What is exported stays in the queue: before an import elsewhere pause the endpoint, and cancel the calls after it, or both will send them.

Examples:

    heed calls export --endpoint sierra --state broken --why "ticket 4711" -o dead.jsonl
    heed calls export --state queued --why "move to another machine" | ssh other heed calls import -`
}

// Run writes the envelopes.
func (c *callsExportCmd) Run(sh *shell) error {
	chosen, err := c.chosen(time.Now())
	if err != nil {
		return err
	}
	if chosen.IDs = c.IDs; len(c.IDs) > 0 && c.any() {
		return usage(errors.New("name calls or give filters, not both"))
	}
	if c.Why == "" && !c.DryRun {
		return usage(errors.New("say why with --why: what is exported is no longer masked or sealed, and the audit log keeps it"))
	}
	if _, err := os.Stat(c.Output); c.Output != "" && err == nil && !c.Force && !c.DryRun {
		return usage(fmt.Errorf("-o %s is there already, perhaps with calls that are nowhere else: name another file, or add --force", c.Output))
	}
	d, err := c.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	if c.DryRun {
		return c.count(sh, d, chosen)
	}
	out, err := openOutput(c.Output, sh.out)
	if err != nil {
		return usage(err)
	}
	defer out.drop()
	if out.part != nil {
		if err := out.part.Chmod(0o600); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"filter": chosen, "why": c.Why, "even_unknown": c.asked()})
	if err != nil {
		return err
	}
	resp, err := d.send(sh.ctx, http.MethodPost, "/_heed/calls/export", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := copyLines(out, resp.Body, sh.progress("exported", 0))
	if err != nil {
		return err
	}
	sh.say("heed: exported %d call(s)", n)
	if left := resp.Trailer.Get("Heed-Left-Unknown"); left != "" && left != "0" {
		sh.say("heed: %s unknown write(s) are left out: they may have been carried out, and whoever imports them sends them. "+
			"Name them, or write --state unknown", left)
	}
	return out.keep()
}

// asked tells whether writes that may have been carried out are meant too.
func (c *callsExportCmd) asked() bool { return len(c.IDs) > 0 || c.asksFor(queue.Unknown) }

// count says how many calls an export would look at.
func (c *callsExportCmd) count(sh *shell, d *desk, chosen chosenCalls) error {
	if len(chosen.States)+len(chosen.IDs) == 0 {
		chosen.States = []string{queue.Queued.String(), queue.Dead.String(), queue.Quarantined.String(), queue.Unknown.String()}
	}
	n := 0
	for call, err := range d.each(sh.ctx, chosen) {
		if err != nil {
			return err
		}
		if call.Endpoint != "_callback" && (c.asked() || !call.doubtful()) {
			n++
		}
	}
	_, err := fmt.Fprintf(sh.out, "%d call(s) would be exported\n", n)
	return err
}

// copyLines copies lines and counts them. An export that ends early, or within
// a line, is none.
func copyLines(to io.Writer, from io.Reader, p *progress) (int, error) {
	r, n := bufio.NewReaderSize(source{from}, 64<<10), 0
	for {
		part, err := r.ReadSlice('\n')
		if _, err := to.Write(part); err != nil {
			return n, err
		}
		switch {
		case err == nil:
			n++
			p.at(n)
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(part) == 0:
			return n, nil
		default:
			return n, &exitError{exitBadAnswer, fmt.Errorf("the export was cut off after %d calls; look at the log of the gateway, then export again", n)}
		}
	}
}

type callsImportCmd struct {
	deskFlags
	File   string `arg:"" help:"The file of envelopes, one JSON document a line; - reads stdin."`
	DryRun bool   `help:"Only check the envelopes; the gateway is not asked."`
	JSON   bool   `help:"Print what came of it as JSON."`
}

// Help is what heed calls import --help says beside the flags.
func (callsImportCmd) Help() string {
	return `Each envelope is taken or refused by itself. One whose id, or whose idempotency key with the same body, is known is a duplicate and changes nothing, so that an import that was cut off can simply be repeated. Exits with 65 if one was refused.

Examples:

    heed calls import dead.jsonl --dry-run
    heed calls import dead.jsonl
    echo '{"heed":1,"method":"GET","endpoint":"demo","path":"/hello"}' | heed calls import -`
}

// importResult is what came of an import.
type importResult struct {
	Accepted   int             `json:"accepted"`
	Duplicates int             `json:"duplicates"`
	Erased     int             `json:"erased,omitempty"`
	Refused    []refusedImport `json:"refused"`
}

type refusedImport struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// importChunk is how many lines are handed over at once.
const importChunk = 500

// Run takes the envelopes in.
func (c *callsImportCmd) Run(sh *shell) error {
	in := sh.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return usage(err)
		}
		defer f.Close()
		in = f
	}
	d, err := c.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	total := importResult{Refused: []refusedImport{}}
	p := sh.progress("imported", 0)
	r := bufio.NewReaderSize(in, 64<<10)
	for line, more := 1, true; more; {
		var chunk bytes.Buffer
		n := 0
		for more && n < importChunk && chunk.Len() < 4<<20 {
			text, err := r.ReadBytes('\n')
			if more = err == nil; err != nil && err != io.EOF {
				return fmt.Errorf("read %s: %w", c.File, err)
			}
			chunk.Write(text)
			n++
		}
		if err := c.take(sh, d, chunk.Bytes(), line, &total); err != nil {
			sh.say("heed: stopped in lines %d to %d; %d call(s) are taken in, and the same import can be repeated", line, line+n-1, total.Accepted)
			return err
		}
		line += n
		p.at(total.Accepted + total.Duplicates + total.Erased)
	}
	return c.report(sh, &total)
}

// take hands one chunk over, whose first line has the number first.
func (c *callsImportCmd) take(sh *shell, d *desk, chunk []byte, first int, total *importResult) error {
	if c.DryRun {
		examine(chunk, first, total)
		return nil
	}
	if len(bytes.TrimSpace(chunk)) == 0 {
		return nil
	}
	resp, err := d.send(sh.ctx, http.MethodPost, "/_heed/calls/import", bytes.NewReader(chunk))
	if e, told := errors.AsType[*refused](err); told {
		total.add(&e.Imported, first)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var part importResult
	if err := json.NewDecoder(resp.Body).Decode(&part); err != nil {
		return fmt.Errorf("what listens on %s is not the admin port of heed: %w", d.place, err)
	}
	total.add(&part, first)
	return nil
}

// add adds what came of a chunk, whose first line has the number first.
func (total *importResult) add(part *importResult, first int) {
	total.Accepted += part.Accepted
	total.Duplicates += part.Duplicates
	total.Erased += part.Erased
	for _, r := range part.Refused {
		total.Refused = append(total.Refused, refusedImport{r.Line + first - 1, r.Why})
	}
}

// examine reads envelopes without sending them.
func examine(chunk []byte, first int, total *importResult) {
	for i, text := range bytes.Split(chunk, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if _, err := queue.ParseEnvelope(text); err != nil {
			total.Refused = append(total.Refused, refusedImport{first + i, plainly(err)})
			continue
		}
		total.Accepted++
	}
}

// plainly is what is wrong with an envelope, without the words that the queue
// puts around it.
func plainly(err error) string {
	text := strings.TrimPrefix(err.Error(), "read envelope: ")
	return strings.TrimSuffix(text, ": "+queue.ErrInvalid.Error())
}

// report tells what came of it all.
func (c *callsImportCmd) report(sh *shell, total *importResult) error {
	if c.JSON {
		if err := json.NewEncoder(sh.out).Encode(total); err != nil {
			return err
		}
	}
	for i, r := range total.Refused {
		if i == previewed {
			sh.say("heed: … and %d more", len(total.Refused)-i)
			break
		}
		sh.say("heed: line %d: %s", r.Line, r.Why)
	}
	if c.DryRun {
		sh.say("heed: %d envelope(s) can be read", total.Accepted)
	} else {
		sh.say("heed: imported %d call(s), %d known already", total.Accepted, total.Duplicates)
	}
	if n := total.Erased; n > 0 {
		sh.say("heed: %d not taken in: they have the idempotency keys of calls that were erased and may have been carried out; "+
			"such a key is free after queue.window, and another idempotency_key is free at once", n)
	}
	if n := len(total.Refused); n > 0 {
		return &exitError{exitBadAnswer, fmt.Errorf("%d envelope(s) refused; correct these lines and import the file again", n)}
	}
	return nil
}
