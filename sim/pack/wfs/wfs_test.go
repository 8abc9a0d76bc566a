package wfs_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/wfs"
)

func open(t *testing.T, steps string) *packtest.Client {
	t.Helper()
	c := packtest.Serve(t, wfs.Pack(), sim.World{Steps: steps, Records: 250})
	c.URL += "/wfs"
	return c
}

const get = "?service=WFS&request=GetFeature&version=2.0.0&typeNames=town:"

// report is an exception report of any version, by local names.
type report struct {
	XMLName xml.Name
	Version string `xml:"version,attr"`
	OWS     struct {
		Code    string `xml:"exceptionCode,attr"`
		Locator string `xml:"locator,attr"`
	} `xml:"Exception"`
	OGC struct {
		Code    string `xml:"code,attr"`
		Locator string `xml:"locator,attr"`
	} `xml:"ServiceException"`
}

// fault is status, namespace of the report and code.
func fault(a packtest.Answer) string {
	r := packtest.ReadXML[report](a)
	return strings.Join([]string{strconv.Itoa(a.Status), r.XMLName.Space, r.OWS.Code + r.OGC.Code}, " ")
}

// collection is a page of any version.
type collection struct {
	Matched  string `xml:"numberMatched,attr"`
	Returned int    `xml:"numberReturned,attr"`
	Number   int    `xml:"numberOfFeatures,attr"`
	Next     string `xml:"next,attr"`
	Members  []struct {
		Inner struct {
			XMLName xml.Name
			ID      string `xml:"http://www.opengis.net/gml/3.2 id,attr"`
			Name    string `xml:"name"`
			Pos     string `xml:"geom>Point>pos"`
			XY      string `xml:"geom>Point>coordinates"`
		} `xml:",any"`
	} `xml:"member"`
	Old []struct{} `xml:"featureMember"`
}

func page(a packtest.Answer) collection { return packtest.ReadXML[collection](a) }

func TestEachVersionHasItsOwnReport(t *testing.T) {
	for version, want := range map[string]string{
		"1.0.0": "200 http://www.opengis.net/ogc InvalidParameterValue",
		"1.1.0": "200 http://www.opengis.net/ows InvalidParameterValue",
		"2.0.0": "400 http://www.opengis.net/ows/1.1 InvalidParameterValue",
	} {
		a := open(t, "").Get("?service=WFS&request=GetFeature&typeName=town:moons&version=" + version)
		if got := fault(a); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}

func TestTheReportOf1_0_0HasItsOwnMediaTypeWithoutACharset(t *testing.T) {
	a := open(t, "").Get("?request=GetFeature&typeName=moons&version=1.0.0")
	if got := a.Header.Get("Content-Type"); got != "application/vnd.ogc.se_xml" {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for query, want := range map[string]string{
		"?request=GetFeature&version=2.0.0":                      "400 http://www.opengis.net/ows/1.1 MissingParameterValue",
		get + "roads&count=x":                                    "400 http://www.opengis.net/ows/1.1 InvalidParameterValue",
		get + "roads&bbox=1,2,3":                                 "400 http://www.opengis.net/ows/1.1 InvalidParameterValue",
		get + "roads&outputFormat=shape":                         "400 http://www.opengis.net/ows/1.1 InvalidParameterValue",
		get + "roads&cql_filter=x":                               "400 http://www.opengis.net/ows/1.1 OptionNotSupported",
		get + "roads&sortBy=age":                                 "400 http://www.opengis.net/ows/1.1 InvalidParameterValue",
		get + "roads&resourceId=roads.9999":                      "404 http://www.opengis.net/ows/1.1 NotFound",
		"?request=GetFeature&version=9.9.9&typeNames=town:roads": "400 http://www.opengis.net/ows/1.1 InvalidParameterValue",
		"?request=GetCapabilities&acceptVersions=9.9.9":          "400 http://www.opengis.net/ows/1.1 VersionNegotiationFailed",
		"?request=GetCapabilities&updateSequence=7":              "400 http://www.opengis.net/ows/1.1 CurrentUpdateSequence",
		"?request=GetCapabilities&updateSequence=8":              "400 http://www.opengis.net/ows/1.1 InvalidUpdateSequence",
	} {
		if got := fault(open(t, "").Get(query)); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestTheCountOfTheHitsIsTrueForEveryType(t *testing.T) {
	for _, name := range []string{"roads", "parcels", "wells", "trees"} {
		c := page(open(t, "").Get(get + name + "&resultType=hits"))
		if c.Matched != "250" || c.Returned != 0 || len(c.Members) != 0 {
			t.Errorf("%s: got %s matched, %d returned", name, c.Matched, c.Returned)
		}
	}
}

func TestEachTypeTellsItsNumberInItsWay(t *testing.T) {
	for name, want := range map[string]string{
		"roads":   "250 matched, 120 returned, next true",
		"parcels": "100 matched, 100 returned, next false",
		"wells":   "unknown matched, 120 returned, next true",
		"trees":   "120 matched, 120 returned, next false",
	} {
		c := page(open(t, "").Get(get + name + "&count=120"))
		got := fmt.Sprintf("%s matched, %d returned, next %v", c.Matched, c.Returned, c.Next != "")
		if got != want || len(c.Members) != c.Returned {
			t.Errorf("%s: got %s with %d members, want %s", name, got, len(c.Members), want)
		}
	}
}

func TestNextLeadsToEveryFeatureOnce(t *testing.T) {
	c := open(t, "")
	seen := map[string]bool{}
	for query := get + "roads&count=100"; query != ""; {
		p := page(c.Get(query))
		for _, m := range p.Members {
			if seen[m.Inner.ID] {
				t.Errorf("%s came twice", m.Inner.ID)
			}
			seen[m.Inner.ID] = true
		}
		query = strings.TrimPrefix(p.Next, c.URL)
	}
	if len(seen) != 250 {
		t.Errorf("got %d features, want 250", len(seen))
	}
}

func TestACappedTypeIsWholeOnlyByStartIndex(t *testing.T) {
	c := open(t, "")
	sum := 0
	for start := 0; start < 250; start += 100 {
		sum += page(c.Get(get + "parcels&startIndex=" + strconv.Itoa(start))).Returned
	}
	if sum != 250 {
		t.Errorf("got %d features, want 250", sum)
	}
}

func TestVersion1_1_0CountsThePage(t *testing.T) {
	c := page(open(t, "").Get("?request=GetFeature&version=1.1.0&typeName=town:roads&maxFeatures=20"))
	if c.Number != 20 || c.Matched != "" {
		t.Errorf("got %d features, %q matched", c.Number, c.Matched)
	}
}

func TestVersion1_0_0TellsNoNumber(t *testing.T) {
	c := page(open(t, "").Get("?request=GetFeature&version=1.0.0&typeName=town:roads&maxFeatures=20"))
	if c.Number != 0 || c.Matched != "" || len(c.Old) != 20 {
		t.Errorf("got %d features, %q matched, %d members", c.Number, c.Matched, len(c.Old))
	}
}

func TestTheAxesDependOnVersionAndReferenceSystem(t *testing.T) {
	for query, want := range map[string]int{
		get + "roads&bbox=50,8,50.0095,8.0005":                                         9,
		get + "roads&bbox=8,50,8.0005,50.0095":                                         0,
		get + "roads&bbox=8,50,8.0005,50.0095,EPSG:4326":                               9,
		get + "roads&bbox=50,8,50.0095,8.0005,urn:ogc:def:crs:EPSG::4326":              9,
		"?request=GetFeature&version=1.0.0&typeName=roads&bbox=8,50,8.0005,50.0095":    9,
		"?request=GetFeature&version=1.0.0&typeName=town:roads&bbox=50,8,50.0095,8.05": 0,
	} {
		c := page(open(t, "").Get(query))
		if got := len(c.Members) + len(c.Old); got != want {
			t.Errorf("%s: got %d, want %d", query, got, want)
		}
	}
}

func TestFeaturesAreSortedByName(t *testing.T) {
	c := open(t, "")
	up, down := page(c.Get(get+"roads&sortBy=name")), page(c.Get(get+"roads&sortBy=name%20DESC"))
	for i := 1; i < len(up.Members); i++ {
		if up.Members[i-1].Inner.Name > up.Members[i].Inner.Name {
			t.Errorf("got %s before %s", up.Members[i-1].Inner.Name, up.Members[i].Inner.Name)
		}
	}
	if first, last := up.Members[0].Inner.Name, down.Members[249].Inner.Name; first != last {
		t.Errorf("got %s first upwards and %s last downwards", first, last)
	}
}

func TestGeoJSONHasTheWordUnknownToo(t *testing.T) {
	a := open(t, "").Get(get + "wells&count=2&outputFormat=application/json")
	got := packtest.Read[struct {
		Type     string
		Features []struct{ ID string }
		Matched  any `json:"numberMatched"`
	}](a)
	if got.Type != "FeatureCollection" || len(got.Features) != 2 || got.Matched != "unknown" {
		t.Errorf("got %s", a.Body)
	}
}

func TestNamesOfParametersHaveNoCase(t *testing.T) {
	c := page(open(t, "").Get("?SERVICE=WFS&REQUEST=getfeature&VERSION=2.0.0&TYPENAMES=town:roads&COUNT=3"))
	if c.Returned != 3 {
		t.Errorf("got %d", c.Returned)
	}
}

func TestAQueryMayBePostedAsXML(t *testing.T) {
	a := open(t, "").Send("POST", "", `<wfs:GetFeature xmlns:wfs="http://www.opengis.net/wfs/2.0" service="WFS" version="2.0.0" count="4">
		<wfs:Query typeNames="town:roads"/></wfs:GetFeature>`)
	if got := page(a); got.Returned != 4 {
		t.Errorf("got %s", a.Body)
	}
}

func TestCapabilitiesNameTheTypesInEveryVersion(t *testing.T) {
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		got := packtest.ReadXML[struct {
			Version string   `xml:"version,attr"`
			Names   []string `xml:"FeatureTypeList>FeatureType>Name"`
		}](open(t, "").Get("?request=GetCapabilities&version=" + version))
		if diff := cmp.Diff(got.Names, []string{"town:roads", "town:parcels", "town:wells", "town:trees"}); diff != "" || got.Version != version {
			t.Errorf("%s: got %s: %s", version, got.Version, diff)
		}
	}
}

func TestCapabilitiesLeadBackToTheService(t *testing.T) {
	c := open(t, "")
	got := packtest.ReadXML[struct {
		Operations []struct {
			Name string `xml:"name,attr"`
			Get  struct {
				Href string `xml:"href,attr"`
			} `xml:"DCP>HTTP>Get"`
		} `xml:"OperationsMetadata>Operation"`
	}](c.Get("?request=GetCapabilities"))
	if len(got.Operations) != 4 || got.Operations[0].Get.Href != c.URL {
		t.Errorf("got %+v, want %s", got, c.URL)
	}
}

func TestADescriptionIsASchemaOfTheTypesAskedFor(t *testing.T) {
	got := packtest.ReadXML[struct {
		Elements []struct {
			Name string `xml:"name,attr"`
		} `xml:"element"`
	}](open(t, "").Get("?request=DescribeFeatureType&version=2.0.0&typeNames=town:wells"))
	if len(got.Elements) != 1 || got.Elements[0].Name != "wells" {
		t.Errorf("got %+v", got)
	}
}

const insert = `<wfs:Transaction service="WFS" version="2.0.0" xmlns:wfs="http://www.opengis.net/wfs/2.0" xmlns:town="http://town.example/gis"
	xmlns:gml="http://www.opengis.net/gml/3.2"><wfs:Insert><town:roads><town:name>%s</town:name>
	<town:geom><gml:Point><gml:pos>51 9</gml:pos></gml:Point></town:geom></town:roads></wfs:Insert></wfs:Transaction>`

type outcome struct {
	Inserted  int `xml:"TransactionSummary>totalInserted"`
	Updated   int `xml:"TransactionSummary>totalUpdated"`
	Deleted   int `xml:"TransactionSummary>totalDeleted"`
	Resources []struct {
		ID string `xml:"rid,attr"`
	} `xml:"InsertResults>Feature>ResourceId"`
}

func TestAFeatureThatIsInsertedIsFound(t *testing.T) {
	c := open(t, "")
	o := packtest.ReadXML[outcome](c.Send("POST", "", fmt.Sprintf(insert, "Tide Street")))
	if o.Inserted != 1 || len(o.Resources) != 1 {
		t.Fatalf("got %+v", o)
	}
	got := page(c.Get(get + "roads&resourceId=" + o.Resources[0].ID)).Members[0].Inner
	if got.Name != "Tide Street" || got.Pos != "51 9" {
		t.Errorf("got %+v", got)
	}
}

func TestAnInsertWhoseAnswerWasLostIsThereTwiceWhenSentAgain(t *testing.T) {
	c := open(t, "features.transact: commit-then-504")
	lost, again := c.Send("POST", "", fmt.Sprintf(insert, "x")), c.Send("POST", "", fmt.Sprintf(insert, "x"))
	hits := page(c.Get(get + "roads&resultType=hits")).Matched
	if lost.Status != 504 || again.Status != 200 || hits != "252" || c.Case.Effects().Kinds["insert"].Count != 2 {
		t.Errorf("got %d, %d, %s features", lost.Status, again.Status, hits)
	}
}

func TestATransactionThatFailsLooksLikeAMatterOfRightsAndDoesNothing(t *testing.T) {
	c := open(t, "")
	body := strings.Replace(fmt.Sprintf(insert, ""), "<wfs:Insert>", "<wfs:Insert><town:roads><town:name>good</town:name></town:roads>", 1)
	if got := fault(c.Send("POST", "", body)); got != "403 http://www.opengis.net/ows/1.1 OperationProcessingFailed" {
		t.Errorf("got %s", got)
	}
	if got := len(c.Case.Effects().Kinds); got != 0 {
		t.Errorf("got %+v", c.Case.Effects())
	}
}

func TestFeaturesAreUpdatedAndDeletedByTheirIDs(t *testing.T) {
	c := open(t, "")
	o := packtest.ReadXML[outcome](c.Send("POST", "", `<Transaction version="2.0.0">
		<Update typeName="town:roads"><Property><ValueReference>town:name</ValueReference><Value>New</Value></Property>
			<Filter><ResourceId rid="roads.1"/></Filter></Update>
		<Delete typeName="town:roads"><Filter><ResourceId rid="roads.2"/><ResourceId rid="roads.9999"/></Filter></Delete></Transaction>`))
	if o.Updated != 1 || o.Deleted != 1 {
		t.Errorf("got %+v", o)
	}
	if got := page(c.Get(get + "roads&resourceId=roads.1,roads.2")); len(got.Members) != 1 || got.Members[0].Inner.Name != "New" {
		t.Errorf("got %+v", got)
	}
}

func TestABodyThatIsNoTransactionIsNotParsed(t *testing.T) {
	a := open(t, "").Send("POST", "?request=Transaction", "request=Transaction&version=2.0.0")
	if got := fault(a); got != "400 http://www.opengis.net/ows/1.1 OperationParsingFailed" {
		t.Errorf("got %s", got)
	}
}

func TestTruncatedGMLMayHaveTheRightLength(t *testing.T) {
	a, err := open(t, "features.get: cut-clean").Try("GET", get+"roads", "")
	if err != nil || a.Status != 200 || strings.Contains(a.Body, "</wfs:FeatureCollection>") || !strings.Contains(a.Body, `numberReturned="250"`) {
		t.Errorf("got %v, %d", err, a.Status)
	}
}

func TestTruncatedGMLMayBreakOff(t *testing.T) {
	if _, err := open(t, "features.get: truncate").Try("GET", get+"roads", ""); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func TestReportsComeInOtherNamespacesAndTypesToo(t *testing.T) {
	for name, want := range map[string]string{
		"another prefix and another namespace":                "400 http://www.opengis.net/ows/2.0 MissingParameterValue",
		"the namespace of OWS 1.0 as default, with a charset": "200 http://www.opengis.net/ows InvalidUpdateSequence",
		"a report that calls itself plain text":               "200 http://www.opengis.net/ows VersionNegotiationFailed",
		"a failure that looks like a matter of rights":        "403 http://www.opengis.net/ows/1.1 OperationProcessingFailed",
		"a service that is down, with 200":                    "200 http://www.opengis.net/ows ServiceUnavailable",
		"a type that does not exist, WFS 1.0":                 "200 http://www.opengis.net/ogc InvalidParameterValue",
		"a transaction that failed in an unknown way":         "200 http://www.opengis.net/ows/1.1 NoApplicableCode",
		"memory that did not suffice":                         "503 http://www.opengis.net/ows/1.1 MaxMemoryExceeded",
		"a parameter that is wrong, with 200, OWS 1.1":        "200 http://www.opengis.net/ows/1.1 InvalidParameterValue",
		"a code that says nothing, with 400":                  "400 http://www.opengis.net/ows/1.1 NoApplicableCode",
		"a lock that is over":                                 "403 http://www.opengis.net/ows/1.1 LockHasExpired",
		"a stored query that is not there":                    "404 http://www.opengis.net/ows/1.1 NotFound",
		"a code of the server's own":                          "500 http://www.opengis.net/ows/1.1 InternalTimeout",
	} {
		if got := fault(open(t, "features.get: golden("+name+")").Get(get + "roads")); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestStepsSpeakTheWordsOfTheService(t *testing.T) {
	for step, want := range map[string]string{
		"400":      "400 http://www.opengis.net/ows/1.1 InvalidParameterValue",
		"403":      "403 http://www.opengis.net/ows/1.1 OperationProcessingFailed",
		"500":      "500 http://www.opengis.net/ows/1.1 NoApplicableCode",
		"envelope": "200 http://www.opengis.net/ows/1.1 NoApplicableCode",
	} {
		if got := fault(open(t, "features.get: "+step).Get(get + "roads")); got != want {
			t.Errorf("%s: got %s, want %s", step, got, want)
		}
	}
}

func TestAThrottleIsOfAProxyInFront(t *testing.T) {
	a := open(t, "features.get: 429(after=20s)").Get(get + "roads")
	if a.Status != 429 || a.Header.Get("Retry-After") != "20" || a.Header.Get("Content-Type") != "text/html" {
		t.Errorf("got %d %v", a.Status, a.Header)
	}
}

func TestWhatIsNotThereIsRefusedWithWhatIs(t *testing.T) {
	a := open(t, "").Get("?service=WFS&request=LockFeature&version=2.0.0")
	if got := fault(a); got != "400 http://www.opengis.net/ows/1.1 OperationNotSupported" || !strings.Contains(a.Body, "GetCapabilities") {
		t.Errorf("got %s", a.Body)
	}
}
