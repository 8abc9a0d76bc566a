package jira

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/heedproject/heed/sim"
)

// search is what /search/jql is asked.
type search struct {
	JQL    string   `json:"jql"`
	Token  string   `json:"nextPageToken"`
	Most   int      `json:"maxResults"`
	Fields []string `json:"fields"`
}

func searchGet(x *sim.Exchange) sim.Answer {
	s := search{JQL: x.Query("jql"), Token: x.Query("nextPageToken"), Fields: list(x.Query("fields"))}
	if text := x.Query("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "maxResults", Detail: "maxResults is a number from 1"})
		}
		s.Most = n
	}
	return pageOf(x, s)
}

func searchPost(x *sim.Exchange) sim.Answer {
	var s search
	if x.Decode(&s) != nil || s.Most < 0 {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: `send {"jql": "project = HEED", "fields": ["summary"]}`})
	}
	return pageOf(x, s)
}

// found is a page of a search. There is no total.
type found struct {
	Issues []shown `json:"issues"`
	Token  string  `json:"nextPageToken,omitempty"`
	Last   bool    `json:"isLast"`
}

// pageOf answers with a page. It has at most 100 issues, or 5000 where nothing
// but their ids is asked for.
func pageOf(x *sim.Exchange, s search) sim.Answer {
	q, fault := parseJQL(s.JQL)
	if fault != "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: fault})
	}
	begin := 0
	if s.Token != "" {
		plain, _ := base64.RawURLEncoding.DecodeString(s.Token)
		n, err := strconv.Atoi(string(plain))
		if begin = n; err != nil || n < 0 {
			return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "The provided next page token is invalid or has expired."})
		}
	}
	idsAlone := len(s.Fields) == 0 || len(s.Fields) == 1 && s.Fields[0] == "id"
	most := 100
	if idsAlone {
		most = 5000
	}
	if s.Most == 0 {
		s.Most = 50
	}
	all := q.run(x)
	end := min(begin+min(s.Most, most), len(all))
	page := found{Issues: []shown{}, Last: end == len(all)}
	for _, i := range all[min(begin, end):end] {
		one := shown{ID: i.ID}
		if !idsAlone {
			one = i.show(x, s.Fields)
		}
		page.Issues = append(page.Issues, one)
	}
	if !page.Last {
		page.Token = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return sim.JSON(200, page)
}

func count(x *sim.Exchange) sim.Answer {
	var s search
	if x.Decode(&s) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: `send {"jql": "project = HEED"}`})
	}
	q, fault := parseJQL(s.JQL)
	if fault != "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: fault})
	}
	return sim.JSON(200, struct {
		Count int `json:"count"`
	}{len(q.run(x))})
}

// removed is what the search of before answers.
func removed(x *sim.Exchange) sim.Answer {
	return x.Refuse(sim.Refusal{Kind: sim.NotFound, Status: http.StatusGone,
		Detail: "The requested API has been removed. Please migrate to the " + base + "/search/jql API."})
}
