package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed/check"
)

//go:embed page.html
var pageText string

// page is parsed when first used: most starts of heed write none.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"timeline": timeline,
		"percent":  func(f float64) string { return fmt.Sprintf("%.0f", 100*f) },
		"seconds":  func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) },
		"class":    func(m check.Mark) string { return strings.ReplaceAll(string(m), "/", "") },
		"of":       of,
		"pictures": pictures,
	}).Parse(pageText))
})

// HTML writes the report as one page that needs nothing else.
func HTML(w io.Writer, r *check.Report) error { return page().Execute(w, r) }

// of returns the results of a group.
func of(group string, all []check.Result) (some []check.Result) {
	for _, one := range all {
		if one.Group == group {
			some = append(some, one)
		}
	}
	return some
}

// pictures returns the cases with so many workers that their dispersion can be
// seen.
func pictures(all []check.Result) (some []check.Result) {
	for _, one := range all {
		if one.Group == check.FleetGroup && len(lanesOf(one.Timeline)) >= 10 {
			some = append(some, one)
		}
	}
	return some
}
