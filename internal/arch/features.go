package arch

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// promises are the requirement ids: a letter and how far it counts.
var promises = []struct {
	letter string
	last   int
}{{"S", 20}, {"T", 9}, {"G", 17}, {"P", 15}, {"N", 7}}

// systems are the systems that heed speaks of by name.
var systems = []string{"Sierra", "Alma", "FOLIO", "WFS", "WMS", "geocoder", "Jira", "Shopify", "GitHub", "HubSpot",
	"Kalshi", "Stripe", "SQLite", "Redis", "Redis Streams", "RabbitMQ", "SQS", "Toxiproxy", "Chaos Mesh",
	"Prefect", "Dagster"}

var (
	proofRef = regexp.MustCompile("`([a-z/.]+)\\.((?:Test|Fuzz|Example)\\w*)`")
	testDecl = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
)

// CheckFeatures reads docs/features.md of the module rooted at fsys and tells
// which promises have no row, and which rows name a test that does not exist.
func CheckFeatures(fsys fs.FS) ([]string, error) {
	text, err := fs.ReadFile(fsys, "docs/features.md")
	if err != nil {
		return nil, err
	}
	rows := map[string][]string{} // id → columns
	for line := range strings.Lines(string(text)) {
		if cols := strings.Split(strings.TrimSpace(line), "|"); len(cols) == 5 {
			id := strings.TrimSpace(cols[1])
			rows[id] = append(rows[id], cols[2], cols[3])
		}
	}
	tests, err := testNames(fsys)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, id := range ids() {
		for _, p := range checkRow(rows[id], tests) {
			problems = append(problems, id+": "+p)
		}
	}
	return problems, nil
}

// ids lists what docs/features.md must speak of.
func ids() []string {
	var all []string
	for _, p := range promises {
		for n := range p.last {
			all = append(all, fmt.Sprintf("%s%d", p.letter, n+1))
		}
	}
	return append(all, systems...)
}

// checkRow looks at how a promise is used and proven.
func checkRow(cols []string, tests map[string]bool) []string {
	if len(cols) != 2 {
		return []string{fmt.Sprintf("has %d rows in docs/features.md, must have one", len(cols)/2)}
	}
	refs := proofRef.FindAllStringSubmatch(cols[1], -1)
	if len(refs) == 0 && !strings.Contains(cols[0]+cols[1], "not yet") {
		return []string{`names no test; write one as package.TestName, or say "not yet"`}
	}
	var problems []string
	for _, m := range refs {
		if name := m[1] + "." + m[2]; !tests[name] {
			problems = append(problems, name+" does not exist")
		}
	}
	return problems
}

// testNames lists all tests as folder.TestName; the root package is heed.
func testNames(fsys fs.FS) (map[string]bool, error) {
	names := map[string]bool{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "testdata"}, path.Base(name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if dir == "." {
			dir = "heed"
		}
		for _, m := range testDecl.FindAllSubmatch(src, -1) {
			names[dir+"."+string(m[1])] = true
		}
		return nil
	})
	return names, err
}
