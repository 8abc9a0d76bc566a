package github

import (
	"strings"

	"github.com/heedproject/heed/sim"
)

// found is what a search answers. Incomplete says that it ran out of time, and
// that there may be more.
type found[T any] struct {
	Total      int  `json:"total_count"`
	Incomplete bool `json:"incomplete_results"`
	Items      []T  `json:"items"`
}

// searchIssues knows repo:, state:, is:open and is:closed, in:title aside;
// every other word must be in the title.
func searchIssues(x *sim.Exchange) sim.Answer {
	words := strings.Fields(x.Query("q"))
	if len(words) == 0 {
		return invalid("Search", "q", "missing")
	}
	repos(x)
	wide := true
	var all []issue
	for _, w := range words {
		wide = wide && !strings.HasPrefix(w, "repo:")
	}
	for _, i := range issues(x).Newest() {
		if fits(i, words) {
			all = append(all, i)
		}
	}
	total := len(all)
	if wide { // it runs out of time half way
		all = all[:len(all)/2]
	}
	return results(x, total, wide, all)
}

func results[T any](x *sim.Exchange, total int, incomplete bool, all []T) sim.Answer {
	if (number(x, "page", 1)-1)*min(number(x, "per_page", 30), maxPage) >= maxFound {
		return failed(422, "Only the first 1000 search results are available", "/search/search")
	}
	some, link := cut(x, all[:min(len(all), maxFound)])
	an := sim.JSON(200, found[T]{total, incomplete, some})
	if link != "" {
		an.Set("Link", link)
	}
	return an
}

func fits(i issue, words []string) bool {
	for _, w := range words {
		name, value, ok := strings.Cut(w, ":")
		switch {
		case !ok && !strings.Contains(strings.ToLower(i.Title), strings.ToLower(w)):
			return false
		case ok && name == "repo" && !strings.EqualFold(i.repo, value):
			return false
		case ok && (name == "state" || name == "is" && value != "issue") && i.State != value:
			return false
		}
	}
	return true
}

// searchCode finds one file in every repository: the simulator keeps no code.
func searchCode(x *sim.Exchange) sim.Answer {
	if x.Query("q") == "" {
		return invalid("Search", "q", "missing")
	}
	type file struct {
		Name string `json:"name"`
		Path string `json:"path"`
		Repo repo   `json:"repository"`
	}
	var all []file
	for _, r := range repos(x).All() {
		all = append(all, file{"README.md", "README.md", r})
	}
	return results(x, len(all), false, all)
}
