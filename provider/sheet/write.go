package sheet

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

// bare are the texts that need no quotes in YAML 1.1 or 1.2: words that are
// no number, no boolean, no null and hold no sign with a meaning (a colon has
// one only before a blank or at the end).
var bare = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z/$]([A-Za-z0-9_./$:-]*[A-Za-z0-9_./$-])?$`)
})

// reserved are words that some reader of YAML takes for something else.
var reserved = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
})

// YAML writes n as a document.
func YAML(n *Node) []byte {
	var b bytes.Buffer
	if n == nil {
		return []byte("{}\n")
	}
	write(&b, n, 0)
	return b.Bytes()
}

func write(b *bytes.Buffer, n *Node, depth int) {
	indent := strings.Repeat("  ", depth)
	switch n.Kind {
	case Mapping:
		for _, m := range n.Members {
			b.WriteString(indent + text(m.Key) + ":")
			writeBelow(b, m.Value, depth+1)
		}
	case Sequence:
		for _, item := range n.Items {
			writeItem(b, item, depth)
		}
	}
}

// writeItem puts a mapping on the line of its dash.
func writeItem(b *bytes.Buffer, item *Node, depth int) {
	if item.Kind != Mapping {
		b.WriteString(strings.Repeat("  ", depth) + "-")
		writeBelow(b, item, depth+1)
		return
	}
	var inner bytes.Buffer
	write(&inner, item, depth+1)
	lines := inner.Bytes()
	copy(lines[2*depth:], "- ")
	b.Write(lines)
}

func writeBelow(b *bytes.Buffer, n *Node, depth int) {
	if n.Kind != Scalar {
		if line, ok := flow(n); ok {
			b.WriteString(" " + line + "\n")
			return
		}
		b.WriteByte('\n')
		write(b, n, depth)
		return
	}
	b.WriteString(" " + text(n))
	if n.Comment != "" {
		b.WriteString(" # " + n.Comment)
	}
	b.WriteByte('\n')
}

// flow writes a list of a few scalars on one line.
func flow(n *Node) (string, bool) {
	if n.Kind != Sequence {
		return "", false
	}
	items := make([]string, len(n.Items))
	for i, item := range n.Items {
		if item.Kind != Scalar || item.Comment != "" {
			return "", false
		}
		items[i] = text(item)
	}
	line := "[" + strings.Join(items, ", ") + "]"
	return line, len(line) <= 100
}

// text writes a scalar; what is not plainly a word is quoted as JSON does,
// which YAML reads alike.
func text(n *Node) string {
	if n.Plain || bare().MatchString(n.Text) && !reserved().MatchString(n.Text) || measure().MatchString(n.Text) {
		return n.Text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(n.Text) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// measure are durations, sizes and rates: a digit first, a unit last.
var measure = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9][0-9.]*(ns|us|µs|ms|s|m|h|KiB|MiB|GiB|TiB)?([0-9.hms]*[hms])?(/(s|min|h|d))?$`)
})
