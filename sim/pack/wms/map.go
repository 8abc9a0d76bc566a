package wms

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

const maxSide = 4096

// canvas is the picture that was asked for.
type canvas struct {
	layers        []layer
	view          view
	width, height int
	format        string
}

func canvasOf(q query) (c canvas, bad *exception) {
	if c.layers, bad = layersOf(q.get("layers")); bad != nil {
		return c, bad
	}
	for style := range strings.SplitSeq(q.get("styles"), ",") {
		if !slices.Contains(styles, style) {
			return c, &exception{"StyleNotDefined", "Style " + style + " is not defined."}
		}
	}
	if c.format = q.get("format"); c.format == "" {
		c.format = "image/png"
	}
	if write[c.format] == nil {
		return c, &exception{"InvalidFormat", "Format " + c.format + " is not supported."}
	}
	var err1, err2 error
	c.width, err1 = strconv.Atoi(q.get("width"))
	c.height, err2 = strconv.Atoi(q.get("height"))
	if err1 != nil || err2 != nil {
		return c, &exception{"MissingDimensionValue", "WIDTH and HEIGHT are numbers of pixels."}
	}
	if min(c.width, c.height) < 1 || max(c.width, c.height) > maxSide {
		return c, &exception{"", "Image size out of range, WIDTH and HEIGHT must be between 1 and 4096 pixels."}
	}
	for _, l := range c.layers {
		if l.mostPixels > 0 && c.width*c.height > l.mostPixels {
			return c, &exception{"MaxMemoryExceeded", "This request used more memory than allowed."}
		}
	}
	c.view, bad = viewOf(q)
	return c, bad
}

// viewOf reads the box, with the axes in the order of version and reference.
func viewOf(q query) (v view, bad *exception) {
	reference := q.get("crs", "srs")
	metres, ok := references[reference]
	if !ok {
		code := "InvalidCRS"
		if q.speaks() < "1.3.0" {
			code = "InvalidSRS"
		}
		return v, &exception{code, "The reference system " + reference + " is not supported."}
	}
	var box [4]float64
	parts := strings.Split(q.get("bbox"), ",")
	for i, p := range parts {
		f, err := strconv.ParseFloat(p, 64)
		if err != nil || len(parts) != len(box) {
			return v, &exception{"", "Invalid values for BBOX: four numbers are expected."}
		}
		box[i] = f
	}
	if reference == "EPSG:4326" && q.speaks() == "1.3.0" {
		box = [4]float64{box[1], box[0], box[3], box[2]}
	}
	if v = (view{box[0], box[1], box[2], box[3], metres}); v.west >= v.east || v.south >= v.north {
		return v, &exception{"", "Invalid values for BBOX: it has no inside."}
	}
	return v, nil
}

func getMap(x *sim.Exchange) sim.Answer {
	q := read(x)
	c, bad := canvasOf(q)
	if bad != nil {
		return failed(x, *bad)
	}
	return picture(q, func(p *image.Paletted) {
		for i, l := range c.layers {
			for n := range l.points {
				right, down := c.view.place(l.at(x, n))
				dot(p, int(right*float64(c.width)), int(down*float64(c.height)), uint8(2+i%(len(palette)-2)))
			}
		}
	})
}

// palette has the background first, then the colour of crosses, then those of layers.
var palette = color.Palette{
	color.White, color.RGBA{0xcc, 0x00, 0x00, 0xff}, color.RGBA{0x1f, 0x4e, 0x79, 0xff}, color.RGBA{0x2e, 0x7d, 0x32, 0xff},
	color.RGBA{0x8d, 0x6e, 0x63, 0xff}, color.RGBA{0xf9, 0xa8, 0x25, 0xff}, color.RGBA{0x6a, 0x1b, 0x9a, 0xff},
}

// fast is a PNG that takes little time: a case serves one request at a time.
var fast = png.Encoder{CompressionLevel: png.BestSpeed}

// write has a way to encode each format.
var write = map[string]func(*bytes.Buffer, *image.Paletted) error{
	"image/png":  func(b *bytes.Buffer, p *image.Paletted) error { return fast.Encode(b, p) },
	"image/jpeg": func(b *bytes.Buffer, p *image.Paletted) error { return jpeg.Encode(b, p, nil) },
	"image/gif":  func(b *bytes.Buffer, p *image.Paletted) error { return gif.Encode(b, p, nil) },
}

// picture draws in the size and format of the request, or what comes near it
// where those are at fault.
func picture(q query, draw func(*image.Paletted)) sim.Answer {
	side := func(name string) int {
		n, err := strconv.Atoi(q.get(name))
		if err != nil || n < 1 || n > maxSide {
			return 256
		}
		return n
	}
	format := q.get("format")
	if write[format] == nil {
		format = "image/png"
	}
	colours := slices.Clone(palette)
	if strings.EqualFold(q.get("transparent"), "true") {
		colours[0] = color.Transparent
	}
	p := image.NewPaletted(image.Rect(0, 0, side("width"), side("height")), colours)
	draw(p)
	var b bytes.Buffer
	if err := write[format](&b, p); err != nil {
		return sim.Text(500, "text/plain", "the picture cannot be written: "+err.Error())
	}
	return sim.Answer{Status: 200, Fields: [][2]string{{"Content-Type", format}}, Body: b.Bytes()}
}

func dot(p *image.Paletted, x, y int, colour uint8) {
	for dy := -1; dy <= 1; dy++ {
		for dx := -1; dx <= 1; dx++ {
			if at := image.Pt(x+dx, y+dy); at.In(p.Rect) {
				p.SetColorIndex(at.X, at.Y, colour)
			}
		}
	}
}

// cross is how an exception looks in a picture.
func cross(p *image.Paletted) {
	w, h := p.Rect.Dx(), p.Rect.Dy()
	for x := range w {
		dot(p, x, x*h/w, 1)
		dot(p, x, h-1-x*h/w, 1)
	}
}

// nothing is how it looks when it is blank.
func nothing(*image.Paletted) {}
