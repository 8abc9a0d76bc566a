package provider

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/theory/jsonpath"
)

// longestPath is far more than any provider's errors need.
const longestPath = 500

// maxTwice is how often a path may look at the same value.
const maxTwice = 16

// literals are the texts within a path; compiled when first used, as every start
// of heed would pay for it.
var literals = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
})

// compilePath compiles a JSON path and refuses one that does not take linear
// time, as far as that can be seen: a body comes from whoever answers, and one
// of 64 KiB keeps $..*..* at work for minutes.
func compilePath(text string) (*jsonpath.Path, error) {
	if len(text) > longestPath {
		return nil, errors.New("the path is too long")
	}
	path, err := jsonpath.Parse(text)
	if err != nil {
		return nil, errors.New("this is not a JSON path")
	}
	descents, twice := 0, 1
	for _, segment := range path.Query().Segments() {
		if segment.IsDescendant() {
			descents++
		}
		overlapping := 0
		seen := map[string]bool{}
		for _, s := range segment.Selectors() {
			word := s.String()
			switch {
			case seen[word]:
				return nil, errors.New("the path names the same thing twice")
			case word[0] == '?' && greedy(word):
				return nil, errors.New("the filter looks at too much for each value")
			case word[0] != '"': // *, an index, a slice or a filter
				overlapping++
			}
			seen[word] = true
		}
		twice *= max(overlapping, 1)
		if descents > 1 || twice > maxTwice {
			return nil, errors.New("the path can look at the same values again and again")
		}
	}
	return path, nil
}

// greedy tells whether a filter looks for each value at more than what lies
// beside it or in it: below it, from the root on, or by a filter of its own.
func greedy(filter string) bool {
	bare := literals().ReplaceAllString(filter, "")
	return strings.Contains(bare, "..") || strings.Contains(bare, "$") || strings.Count(bare, "?") > 1
}
