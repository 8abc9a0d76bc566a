package wms

import (
	"math"
	"slices"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

const painted = "town:painted"

type layer struct {
	name, title string
	points      int
	queryable   bool
	mostPixels  int // 0: no bound of its own
}

var layers = []layer{
	{"town:roads", "Roads", 60, true, 0},
	{"town:wells", "Wells", 25, true, 0},
	{"town:relief", "Relief", 40, false, 0},
	{"town:heavy", "Heavy", 90, true, 1024 * 1024},
	{painted, "Painted", 30, true, 0},
}

var styles = []string{"", "default"}

// layersOf finds the layers of a list by their names.
func layersOf(list string) (found []layer, bad *exception) {
	if list == "" {
		return nil, &exception{"MissingParameterValue", "The request names no layer."}
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(layers, func(l layer) bool { return l.name == name })
		if i < 0 {
			return nil, &exception{"LayerNotDefined", "Layer " + name + " is not defined."}
		}
		found = append(found, layers[i])
	}
	return found, nil
}

// point is a thing of a layer, in degrees.
type point struct {
	name     string
	lon, lat float64
}

// at returns point n of the layer. They lie scattered over a tenth of a degree.
func (l layer) at(x *sim.Exchange, n int) point {
	_, family := stock.Person(x, n)
	part := func(step float64) float64 {
		_, f := math.Modf(float64(n+len(l.name)) * step)
		return f / 10
	}
	return point{family, 8 + part(0.7548776662), 50 + part(0.5698402909)} // of the plastic number, which scatters evenly
}

// view is the part of the world on a picture: in degrees or in metres.
type view struct {
	west, south, east, north float64
	metres                   bool
}

// references that maps can be drawn in; true where they are in metres.
var references = map[string]bool{"EPSG:4326": false, "CRS:84": false, "EPSG:3857": true}

// place returns where p lies, as parts of the picture from its upper left corner.
func (v view) place(p point) (right, down float64) {
	e, n := p.lon, p.lat
	if v.metres {
		const earth = 6378137 // metres, of EPSG:3857
		e = earth * e * math.Pi / 180
		n = earth * math.Log(math.Tan(math.Pi/4+n*math.Pi/360))
	}
	return (e - v.west) / (v.east - v.west), (v.north - n) / (v.north - v.south)
}
