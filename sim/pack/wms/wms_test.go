package wms_test

import (
	"encoding/xml"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/wms"
)

func open(t *testing.T, steps string) *packtest.Client {
	t.Helper()
	c := packtest.Serve(t, wms.Pack(), sim.World{Steps: steps})
	c.URL += "/wms"
	return c
}

const (
	plain = "?request=GetMap&version=1.3.0&layers=town:roads&crs=CRS:84&bbox=8,50,8.1,50.1"
	get   = plain + "&width=64&height=32"
	wrong = "?request=GetMap&version=1.3.0&layers=town:moon&crs=CRS:84&bbox=8,50,8.1,50.1&width=64&height=32"
)

// inked counts pixels that are not of the background.
func inked(t *testing.T, a packtest.Answer) (format string, size image.Point, n int) {
	t.Helper()
	img, format, err := image.Decode(strings.NewReader(a.Body))
	if err != nil {
		t.Fatalf("%d %v %q: %v", a.Status, a.Header, a.Body, err)
	}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if r, g, bl, _ := img.At(x, y).RGBA(); r < 0xf000 || g < 0xf000 || bl < 0xf000 {
				n++
			}
		}
	}
	return format, b.Size(), n
}

type report struct {
	XMLName   xml.Name
	Exception struct {
		Code string `xml:"code,attr"`
	} `xml:"ServiceException"`
}

// fault is status, root and code of a report.
func fault(a packtest.Answer) string {
	r := packtest.ReadXML[report](a)
	return strings.TrimSpace(strconv.Itoa(a.Status) + " " + r.XMLName.Space + " " + r.XMLName.Local + " " + r.Exception.Code)
}

func TestAMapIsAPictureOfTheSizeAndFormatAskedFor(t *testing.T) {
	for _, want := range []string{"png", "jpeg", "gif"} {
		a := open(t, "").Get(get + "&format=image/" + want)
		format, size, n := inked(t, a)
		if format != want || size != image.Pt(64, 32) || n == 0 || a.Header.Get("Content-Type") != "image/"+want {
			t.Errorf("got %s of %v with %d pixels inked, %v", format, size, n, a.Header)
		}
	}
}

func TestAMapIsTheSameEveryTime(t *testing.T) {
	if a, b := open(t, "").Get(get).Body, open(t, "").Get(get).Body; a != b {
		t.Error("two maps of the same differ")
	}
}

func TestAnotherPlaceIsEmpty(t *testing.T) {
	if _, _, n := inked(t, open(t, "").Get(strings.Replace(get, "8,50,8.1,50.1", "9,50,9.1,50.1", 1))); n != 0 {
		t.Errorf("got %d pixels inked", n)
	}
}

func TestTheAxesDependOnVersionAndReferenceSystem(t *testing.T) {
	want := open(t, "").Get(get).Body
	for _, query := range []string{
		"?request=GetMap&version=1.3.0&layers=town:roads&crs=EPSG:4326&bbox=50,8,50.1,8.1&width=64&height=32",
		"?request=GetMap&version=1.1.1&layers=town:roads&srs=EPSG:4326&bbox=8,50,8.1,50.1&width=64&height=32",
		"?REQUEST=map&WMTVER=1.0.0&LAYERS=town:roads&SRS=EPSG:4326&BBOX=8,50,8.1,50.1&WIDTH=64&HEIGHT=32",
	} {
		if got := open(t, "").Get(query).Body; got != want {
			t.Errorf("%s gives another map", query)
		}
	}
}

func TestAMapInMetresShowsTheSamePoints(t *testing.T) {
	_, _, n := inked(t, open(t, "").Get("?request=GetMap&version=1.3.0&layers=town:roads&crs=EPSG:3857"+
		"&bbox=890555,6446275,901688,6463612&width=64&height=32"))
	if n == 0 {
		t.Error("nothing is inked")
	}
}

func TestEachVersionHasItsOwnReport(t *testing.T) {
	for _, tt := range []struct{ version, want, media string }{
		{"1.0.0", "200  WMTException", "text/xml"},
		{"1.1.1", "200  ServiceExceptionReport LayerNotDefined", "application/vnd.ogc.se_xml"},
		{"1.3.0", "200 http://www.opengis.net/ogc ServiceExceptionReport LayerNotDefined", "text/xml; charset=UTF-8"},
	} {
		a := open(t, "").Get(strings.Replace(wrong, "1.3.0", tt.version, 1))
		if got := fault(a); got != tt.want || a.Header.Get("Content-Type") != tt.media {
			t.Errorf("%s: got %s, %v", tt.version, got, a.Header)
		}
	}
}

func TestWhatIsWrongHasACodeOrNone(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{get + "&styles=bold", "StyleNotDefined"},
		{get + "&format=image/bmp", "InvalidFormat"},
		{plain, "MissingDimensionValue"},
		{plain + "&width=5000&height=1", ""},
		{strings.Replace(get, "CRS:84", "EPSG:1", 1), "InvalidCRS"},
		{"?request=GetMap&version=1.1.1&layers=town:roads&srs=EPSG:1&bbox=1,2,3,4&width=9&height=9", "InvalidSRS"},
		{strings.Replace(get, "8,50,8.1,50.1", "8,50,8,50", 1), ""},
		{strings.Replace(get, "town:roads", "", 1), "MissingParameterValue"},
		{strings.Replace(plain, "town:roads", "town:heavy", 1) + "&width=1025&height=1024", "MaxMemoryExceeded"},
		{strings.Replace(get, "GetMap", "GetFeatureInfo", 1) + "&query_layers=town:relief&i=1&j=1", "LayerNotQueryable"},
		{strings.Replace(get, "GetMap", "GetFeatureInfo", 1) + "&query_layers=town:roads&i=64&j=1", "InvalidPoint"},
		{"?request=GetCapabilities&updateSequence=7", "CurrentUpdateSequence"},
		{"?request=GetCapabilities&updateSequence=8", "InvalidUpdateSequence"},
	} {
		a := open(t, "").Get(tt.query)
		if got := packtest.ReadXML[report](a); a.Status != 200 || got.Exception.Code != tt.want {
			t.Errorf("%s: got %d %q, want %q", tt.query, a.Status, got.Exception.Code, tt.want)
		}
	}
}

func TestASmallerPictureOfTheHeavyLayerPasses(t *testing.T) {
	_, size, _ := inked(t, open(t, "").Get(strings.Replace(plain, "town:roads", "town:heavy", 1)+"&width=1024&height=1024"))
	if size != image.Pt(1024, 1024) {
		t.Errorf("got %v", size)
	}
}

func TestAnErrorInThePictureLooksLikeAMap(t *testing.T) {
	for form, drawn := range map[string]bool{
		"INIMAGE": true, "application/vnd.ogc.se_inimage": true, "BLANK": false, "application/vnd.ogc.se_blank": false,
	} {
		a := open(t, "").Get(wrong + "&exceptions=" + form)
		_, size, n := inked(t, a)
		if a.Status != 200 || a.Header.Get("Content-Type") != "image/png" || size != image.Pt(64, 32) || (n > 0) != drawn {
			t.Errorf("%s: got %d %v, %v, %d pixels inked", form, a.Status, a.Header, size, n)
		}
	}
}

func TestAServerMayDrawItsErrorsUnlessItIsToldNotTo(t *testing.T) {
	query := strings.Replace(wrong, "town:moon", "town:painted,town:moon", 1)
	if _, _, n := inked(t, open(t, "").Get(query)); n == 0 {
		t.Error("nothing is drawn")
	}
	if got := packtest.ReadXML[report](open(t, "").Get(query + "&exceptions=XML")); got.Exception.Code != "LayerNotDefined" {
		t.Errorf("got %+v", got)
	}
}

func TestAFailureWithoutACodeComesInTheFormAskedFor(t *testing.T) {
	c := open(t, "maps.get: envelope x2")
	if got := fault(c.Get(get)); got != "200 http://www.opengis.net/ogc ServiceExceptionReport" {
		t.Errorf("got %s", got)
	}
	if _, _, n := inked(t, c.Get(get+"&exceptions=INIMAGE")); n == 0 {
		t.Error("nothing is drawn")
	}
}

func TestCapabilitiesNameTheLayersInEveryVersion(t *testing.T) {
	for version, root := range map[string]string{"1.1.1": "WMT_MS_Capabilities", "1.3.0": "WMS_Capabilities"} {
		c := open(t, "")
		got := packtest.ReadXML[struct {
			XMLName xml.Name
			Version string   `xml:"version,attr"`
			Names   []string `xml:"Capability>Layer>Layer>Name"`
			Map     struct {
				At struct {
					Href string `xml:"href,attr"`
				} `xml:"DCPType>HTTP>Get>OnlineResource"`
			} `xml:"Capability>Request>GetMap"`
		}](c.Get("?request=GetCapabilities&version=" + version))
		want := []string{"town:roads", "town:wells", "town:relief", "town:heavy", "town:painted"}
		if diff := cmp.Diff(got.Names, want); diff != "" || got.XMLName.Local != root || got.Version != version || got.Map.At.Href != c.URL {
			t.Errorf("%s: got %+v", version, got)
		}
	}
}

func TestInformationIsOfThePointsNearThePixel(t *testing.T) {
	c := open(t, "")
	ask := func(format string) packtest.Answer {
		return c.Get(strings.Replace(plain, "GetMap", "GetFeatureInfo", 1) +
			"&width=4&height=4&query_layers=town:roads&i=2&j=2&info_format=" + format)
	}
	found := packtest.Read[struct {
		Features []struct{ Properties struct{ Name string } }
	}](ask("application/json")).Features
	if len(found) == 0 {
		t.Fatal("got nothing")
	}
	name := found[0].Properties.Name
	for format, want := range map[string]string{"text/html": "<td>" + name + "</td>", "text/plain": "name = " + name} {
		if a := ask(format); !strings.Contains(a.Body, want) || a.Header.Get("Content-Type") != format {
			t.Errorf("%s: got %v %s", format, a.Header, a.Body)
		}
	}
}

func TestReportsComeInOtherTypesToo(t *testing.T) {
	for name, want := range map[string]string{
		"the media type of WMS 1.1.1, with a document type": "200  ServiceExceptionReport InvalidSRS",
		"the media type of WMS 1.1.1, with a charset":       "200  ServiceExceptionReport StyleNotDefined",
		"a failure of WMS 1.0":                              "200  WMTException",
		"a service that is down, with 200":                  "200  ServiceExceptionReport ServiceUnavailable",
		"memory that did not suffice":                       "503  ServiceExceptionReport MaxMemoryExceeded",
	} {
		a := open(t, "maps.get: golden("+name+")").Get(get)
		a.Body = strings.Replace(a.Body, `encoding="ISO-8859-1"`, "", 1)
		if got := fault(a); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestStepsSpeakTheWordsOfTheService(t *testing.T) {
	for step, want := range map[string]string{
		"400": "400 http://www.opengis.net/ogc ServiceExceptionReport InvalidParameterValue",
		"500": "500 http://www.opengis.net/ogc ServiceExceptionReport",
	} {
		if got := fault(open(t, "maps.get: "+step).Get(get)); got != want {
			t.Errorf("%s: got %s, want %s", step, got, want)
		}
	}
}

func TestAThrottleIsOfAProxyInFront(t *testing.T) {
	a := open(t, "maps.get: 429(after=30s)").Get(get)
	if a.Status != 429 || a.Header.Get("Retry-After") != "30" || a.Header.Get("Content-Type") != "text/html" {
		t.Errorf("got %d %v", a.Status, a.Header)
	}
}

func TestWhatIsNotThereIsRefusedWithWhatIs(t *testing.T) {
	a := open(t, "").Get("?request=GetLegendGraphic&version=1.3.0")
	if got := fault(a); got != "400 http://www.opengis.net/ogc ServiceExceptionReport OperationNotSupported" || !strings.Contains(a.Body, "GetMap") {
		t.Errorf("got %s", a.Body)
	}
}
