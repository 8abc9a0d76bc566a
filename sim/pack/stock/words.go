package stock

import "github.com/heedproject/heed/sim"

// Title is that of book n of the world.
func Title(x *sim.Exchange, n int) string {
	return Pick(x, "form", n, forms) + " of " + Pick(x, "matter", n, matters)
}

// Author wrote book n of the world.
func Author(x *sim.Exchange, n int) string {
	return Pick(x, "family", n, families) + ", " + Pick(x, "given", n, givens)
}

// Person is reader n of the world.
func Person(x *sim.Exchange, n int) (given, family string) {
	return Pick(x, "reader's given", n, givens), Pick(x, "reader's family", n, families)
}

var (
	forms    = []string{"An outline", "The making", "A handbook", "Essays", "The silence", "A chronicle", "Songs", "The measure"}
	matters  = []string{"tides", "lanterns", "orchards", "railways", "ink", "glaciers", "markets", "stars", "roofs", "salt"}
	families = []string{"Okafor", "Lindqvist", "Moreau", "Tanaka", "Silva", "Novak", "Haile", "Rossi", "Weber", "Kaya"}
	givens   = []string{"Ada", "Bram", "Chiara", "Dário", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jun"}
)
