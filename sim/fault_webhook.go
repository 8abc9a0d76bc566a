package sim

import (
	"slices"
	"strings"
	"time"
)

// hookFaults lists the words of lines that tell of webhooks. The steps of such
// a line are handed out to the messages for one receiver, at most once each.
var hookFaults = []fault{
	// lost: the message is never sent; the provider believes that it was.
	{name: "lost", spoil: func(d *delivery, _ *step) { d.lost = true }},
	// late: it is sent for= later than usual (default 1 min), so that others overtake it.
	{name: "late", spoil: func(d *delivery, s *step) { d.wait += s.wait("for", time.Minute) }, takes: []string{"for"}},
	// twice: a copy with the same id follows after after= (default at once).
	{name: "twice", spoil: func(d *delivery, s *step) { d.copies, d.apart = 1, s.wait("after", 0) }, takes: []string{"after"}},
	// reorder: it is held until the next one went, for for= at most (default 1 min).
	{name: "reorder", spoil: func(d *delivery, s *step) { d.behind = max(s.wait("for", time.Minute), 1) }, takes: []string{"for"}},
	// forged: it is signed with another secret, as somebody else would.
	{name: "forged", spoil: func(d *delivery, _ *step) { d.message.Secret = "not the secret" }},
	// stale: its signature is age= old (default 1 h), as of one that is played back.
	{name: "stale", spoil: func(d *delivery, s *step) { d.aged = s.wait("age", time.Hour) }, takes: []string{"age"}},
}

// faultOf finds the word in the table.
func faultOf(table []fault, word string) *fault {
	if i := slices.IndexFunc(table, func(f fault) bool { return f.name == word }); i >= 0 {
		return &table[i]
	}
	return nil
}

func wordsOf(table []fault) string {
	names := make([]string, len(table))
	for i, f := range table {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}
