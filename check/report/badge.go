package report

import (
	"fmt"
	"io"

	"github.com/heedproject/heed/check"
)

// Badge writes a small SVG picture with the grade.
func Badge(w io.Writer, r *check.Report) error {
	color := map[string]string{"A+": "#2da44e", "A": "#2da44e", "B": "#9a9a00", "C": "#bf8700", "D": "#d4600a", "F": "#cf222e"}[r.Grade]
	if color == "" {
		color = "#6e7781"
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="118" height="20" role="img" aria-label="heed check: %[1]s">
<title>heed check: %[1]s</title>
<rect width="82" height="20" fill="#3c4149"/><rect x="82" width="36" height="20" fill="%[2]s"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="41" y="14">heed check</text><text x="100" y="14">%[1]s</text>
</g></svg>
`, r.Told(), color)
	return err
}
