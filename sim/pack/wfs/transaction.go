package wfs

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

// transaction is what a client sends.
type transaction struct {
	Inserts []struct {
		Features []sent `xml:",any"`
	} `xml:"Insert"`
	Updates []struct {
		Type       string `xml:"typeName,attr"`
		Properties []struct {
			Reference string `xml:"ValueReference"`
			Name      string `xml:"Name"` // before 2.0.0
			Value     string `xml:"Value"`
		} `xml:"Property"`
		Filter filter `xml:"Filter"`
	} `xml:"Update"`
	Deletes []struct {
		Type   string `xml:"typeName,attr"`
		Filter filter `xml:"Filter"`
	} `xml:"Delete"`
}

// sent is a feature to insert.
type sent struct {
	XMLName xml.Name
	Name    string `xml:"name"`
	Pos     string `xml:"geom>Point>pos"`
}

// filter names features by their ids.
type filter struct {
	Resources []struct {
		ID string `xml:"rid,attr"`
	} `xml:"ResourceId"`
	Features []struct {
		ID string `xml:"fid,attr"`
	} `xml:"FeatureId"`
}

func (f filter) ids() (ids []string) {
	for _, r := range f.Resources {
		ids = append(ids, r.ID)
	}
	for _, r := range f.Features {
		ids = append(ids, r.ID)
	}
	return ids
}

// change is one that is to be made once all of a transaction is known to be good.
type change struct {
	kind    kind
	effect  string
	feature feature
}

// summary counts what was done.
type summary struct{ inserted, updated, deleted int }

func transact(x *sim.Exchange) sim.Answer {
	q := read(x)
	if bad := q.unspoken(); bad != nil {
		return failed(x, *bad)
	}
	if q.speaks() == "1.0.0" {
		return failed(x, exception{"OperationNotSupported", "request", "This simulator has transactions from 1.1.0 on."})
	}
	var t transaction
	if err := xml.Unmarshal(x.Body, &t); err != nil {
		return failed(x, exception{"OperationParsingFailed", "Transaction", "The transaction is no XML: " + err.Error()})
	}
	changes, bad := t.changes(x)
	if bad != nil {
		return failed(x, *bad)
	}
	var s summary
	var ids []string
	for _, c := range changes {
		all := c.kind.open(x)
		switch c.effect {
		case "insert":
			c.feature.ID = c.kind.name + "." + strconv.Itoa(c.free(x, all))
			ids = append(ids, c.feature.ID)
			all.Put(c.feature.ID, c.feature)
			s.inserted++
			x.Effect(c.effect, "", 0)
			continue
		case "update":
			all.Put(c.feature.ID, c.feature)
			s.updated++
		case "delete":
			all.Delete(c.feature.ID)
			s.deleted++
		}
		x.Effect(c.effect, c.feature.ID, 0)
	}
	return outcome(q.speaks(), s, ids)
}

// free is a number that no feature ever had.
func (c change) free(x *sim.Exchange, all stock.Stock[feature]) int {
	last := sim.Rows[int](x, "numbers")
	n, ok := last.Get(c.kind.name)
	if !ok {
		n = all.Made
	}
	last.Put(c.kind.name, n+1)
	return n + 1
}

// changes reads all of t, or says why nothing of it is done.
func (t *transaction) changes(x *sim.Exchange) (all []change, bad *exception) {
	for _, i := range t.Inserts {
		for _, f := range i.Features {
			k, ok := kindOf(f.XMLName.Local)
			if !ok {
				return nil, &exception{"InvalidValue", "Insert", "Feature type " + f.XMLName.Local + " unknown"}
			}
			if f.Name == "" {
				return nil, &exception{"OperationProcessingFailed", "Insert", "A feature without a name cannot be inserted."}
			}
			n := feature{Name: f.Name}
			_, _ = fmt.Sscan(f.Pos, &n.Lat, &n.Lon) // without a place it lies at 0 0
			all = append(all, change{k, "insert", n})
		}
	}
	for _, u := range t.Updates {
		found, bad := named(x, u.Type, u.Filter, "update")
		if bad != nil {
			return nil, bad
		}
		for i := range found {
			for _, p := range u.Properties {
				if strings.TrimPrefix(p.Reference+p.Name, prefix+":") != "name" {
					return nil, &exception{"InvalidValue", "Property", "There is no property " + p.Reference + p.Name + " to update."}
				}
				found[i].feature.Name = p.Value
			}
		}
		all = append(all, found...)
	}
	for _, d := range t.Deletes {
		found, bad := named(x, d.Type, d.Filter, "delete")
		if bad != nil {
			return nil, bad
		}
		all = append(all, found...)
	}
	return all, nil
}

// named are changes of the features that a filter names. One that is not there
// is no error: it is not counted.
func named(x *sim.Exchange, name string, f filter, effect string) (all []change, bad *exception) {
	k, ok := kindOf(name)
	if !ok {
		return nil, &exception{"InvalidParameterValue", "typeName", "Feature type " + name + " unknown"}
	}
	ids := f.ids()
	if len(ids) == 0 {
		return nil, &exception{"OptionNotSupported", "Filter", "This simulator changes features by ResourceId or FeatureId."}
	}
	for _, id := range ids {
		if one, ok := k.open(x).Get(id); ok {
			all = append(all, change{k, effect, one})
		}
	}
	return all, nil
}

type response struct {
	XMLName  struct{} `xml:"wfs:TransactionResponse"`
	WFS      string   `xml:"xmlns:wfs,attr"`
	Filter   string   `xml:"xmlns:fes,attr"`
	Version  string   `xml:"version,attr"`
	Inserted int      `xml:"wfs:TransactionSummary>wfs:totalInserted"`
	Updated  int      `xml:"wfs:TransactionSummary>wfs:totalUpdated"`
	Deleted  int      `xml:"wfs:TransactionSummary>wfs:totalDeleted"`
	Results  []result `xml:"wfs:InsertResults>wfs:Feature,omitempty"`
}

// result names a feature that was inserted, in the words of its version.
type result struct {
	Resource *resourceID `xml:"fes:ResourceId"`
	Feature  *featureID  `xml:"fes:FeatureId"`
}

type resourceID struct {
	ID string `xml:"rid,attr"`
}

type featureID struct {
	ID string `xml:"fid,attr"`
}

func outcome(version string, s summary, ids []string) sim.Answer {
	r := response{WFS: "http://www.opengis.net/wfs/2.0", Filter: "http://www.opengis.net/fes/2.0", Version: version,
		Inserted: s.inserted, Updated: s.updated, Deleted: s.deleted}
	if version == "1.1.0" {
		r.WFS, r.Filter = "http://www.opengis.net/wfs", "http://www.opengis.net/ogc"
	}
	for _, id := range ids {
		if version == "1.1.0" {
			r.Results = append(r.Results, result{Feature: &featureID{id}})
		} else {
			r.Results = append(r.Results, result{Resource: &resourceID{id}})
		}
	}
	return document("application/xml", r)
}
