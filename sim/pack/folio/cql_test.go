package folio

import "testing"

var shelfmark = doc{"title": "The making of salt", "year": 1999.0, "open": true, "status": map[string]any{"name": "Available"}}

func TestAQueryTakesWhatItSays(t *testing.T) {
	for text, want := range map[string]bool{
		`cql.allRecords=1`:            true,
		`title=="The making of salt"`: true,
		`title=="The making"`:         false,
		`title=="The making*"`:        true,
		`title=salt`:                  true,
		`title="SALT making"`:         true,
		`title all "sal*"`:            true,
		`title=pepper`:                false,
		`status.name==Available`:      true,
		`year>=1999`:                  true,
		`year<1999`:                   false,
		`open==true`:                  true,
		`none<>x`:                     false,
		`title=salt and year==1999`:   true,
		`title=salt and year==2000`:   false,
		`title=pepper or year==1999 not open==false`: true,
		`title=salt sortBy title`:                    true,
	} {
		q, err := parseCQL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := q.where(shelfmark); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestAQueryThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{
		`title`, `title=`, `title="x`, `title=="x\`, `(title==x)`, `title==x and`, `title==x year==2`, `title==x sortBy`,
		`title =/= x`, `title<=>x`,
	} {
		if _, err := parseCQL(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func FuzzParseCQL(f *testing.F) {
	for _, seed := range []string{`a==b`, `a="b c*" and d<>"e\"" sortBy f/sort.descending`, `cql.allRecords=1 not x>1`, `"`, `(`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseCQL(text)
		if err == nil && q.where != nil {
			q.where(shelfmark)
		}
		q.order([]doc{shelfmark, {}})
	})
}
