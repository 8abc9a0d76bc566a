package sheet

import (
	"slices"
	"strings"
)

// remedyFor says what was meant by word, if one of known is near enough.
func remedyFor(word string, known []string) string {
	if guess := Near(word, known); guess != "" {
		return "did you mean " + guess + "?"
	}
	return "use one of " + list(known)
}

func list(words []string) string { return strings.Join(words, ", ") }

// short keeps a stray key from filling the screen.
func short(key string) string {
	const most = 40
	if r := []rune(key); len(r) > most {
		return string(r[:most]) + "…"
	}
	return key
}

// Near returns the word of known that is most like word, or "" when none is:
// more than a third of its letters would have to change.
func Near(word string, known []string) string {
	best, guess := len(word)/3+1, ""
	if len(word) <= 3 { // of which two make another word
		best = 1
	}
	if len(word) > 64 {
		return ""
	}
	for _, k := range known {
		if d := distance(plain(word), plain(k)); d <= best && (guess == "" || d < best) {
			best, guess = d, k
		}
	}
	return guess
}

// plain makes max-age, maxAge and max_age alike.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// distance counts the letters to add, drop, change or swap with their
// neighbour (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = slices.Min([]int{last[j] + 1, row[j-1] + 1, last[j-1] + change})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
