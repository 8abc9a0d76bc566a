package wms_test

import (
	"strings"
	"testing"

	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/wms"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	for name, query := range map[string]string{
		"a layer that does not exist, with 200":              wrong,
		"the media type of WMS 1.1.1, with a document type":  "?request=GetMap&version=1.1.1&layers=town:roads&srs=EPSG:1&bbox=1,2,3,4&width=9&height=9",
		"a failure without a code":                           plain + "&width=5000&height=1",
		"a failure of WMS 1.0":                               strings.Replace(wrong, "1.3.0", "1.0.0", 1),
		"a picture":                                          get,
		"a picture with an error drawn into it":              wrong + "&format=image/gif&exceptions=INIMAGE",
		"capabilities, which list the formats of exceptions": "?request=GetCapabilities&version=1.1.1",
		"information on a feature, as HTML": strings.Replace(plain, "GetMap", "GetFeatureInfo", 1) +
			"&width=4&height=4&query_layers=town:roads&i=2&j=2&info_format=text/html",
	} {
		want := packtest.Golden(t, wms.Pack(), name)
		if short := packtest.Alike(open(t, "").Get(query), want, "code", "version"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
