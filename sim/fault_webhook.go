package sim

import (
	"slices"
	"strings"
)

// hookFaults lists the words of lines that tell of webhooks. The steps of such
// a line are handed out to the messages for one receiver, at most once each.
var hookFaults = []fault{
	{name: "lost", spoil: spoilLost},
	{name: "late", spoil: spoilLate, takes: []string{"for"}},
	{name: "twice", spoil: spoilTwice, takes: []string{"after"}},
	{name: "reorder", spoil: spoilReorder, takes: []string{"for"}},
	{name: "forged", spoil: spoilForged},
	{name: "stale", spoil: spoilStale, takes: []string{"age"}},
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
