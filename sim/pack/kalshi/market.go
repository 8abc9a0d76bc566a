package kalshi

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

// market is a question with two answers. Prices are cents.
type market struct {
	Ticker string `json:"ticker"`
	Event  string `json:"event_ticker"`
	Title  string `json:"title"`
	Status string `json:"status"`
	YesBid int    `json:"yes_bid"`
	YesAsk int    `json:"yes_ask"`
	NoBid  int    `json:"no_bid"`
	NoAsk  int    `json:"no_ask"`
}

// markets is how many there are; the last five are closed.
const (
	markets = 120
	closed  = 5
)

// marketAt is the market with this number, from 1. Its prices depend on the
// seed of the world.
func marketAt(seed uint64, n int) market {
	mid := 20 + int((seed+uint64(n)*37)%60)
	m := market{
		Ticker: fmt.Sprintf("KXRAIN-26DEC-T%d", n), Event: "KXRAIN-26DEC",
		Title: fmt.Sprintf("Will it rain more than %d mm in December?", n), Status: "active",
		YesBid: mid - 1, YesAsk: mid + 1, NoBid: 99 - mid, NoAsk: 101 - mid,
	}
	if n > markets-closed {
		m.Status = "closed"
	}
	return m
}

// marketNamed is the market with this ticker.
func marketNamed(x *sim.Exchange, ticker string) (market, bool) {
	text, ok := strings.CutPrefix(ticker, "KXRAIN-26DEC-T")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 || n > markets || strconv.Itoa(n) != text {
		return market{}, false
	}
	return marketAt(x.Seed(), n), true
}

func listMarkets(x *sim.Exchange) sim.Answer {
	var all []market
	status := x.Query("status")
	for n := range markets {
		m := marketAt(x.Seed(), n+1)
		if status == "" || status == m.Status || status == "open" && m.Status == "active" {
			all = append(all, m)
		}
	}
	some, cursor, bad := cut(x, all)
	if bad != nil {
		return x.Refuse(*bad)
	}
	return sim.JSON(200, struct {
		Markets []market `json:"markets"`
		Cursor  string   `json:"cursor"`
	}{some, cursor})
}

func getMarket(x *sim.Exchange) sim.Answer {
	m, ok := marketNamed(x, x.Value("ticker"))
	if !ok {
		return x.Refuse(missing("market"))
	}
	return sim.JSON(200, struct {
		Market market `json:"market"`
	}{m})
}

func getBook(x *sim.Exchange) sim.Answer {
	m, ok := marketNamed(x, x.Value("ticker"))
	if !ok {
		return x.Refuse(missing("market"))
	}
	type book struct {
		Yes [][2]int `json:"yes"`
		No  [][2]int `json:"no"`
	}
	return sim.JSON(200, struct {
		Book book `json:"orderbook"`
	}{book{[][2]int{{m.YesBid - 1, 300}, {m.YesBid, 100}}, [][2]int{{m.NoBid - 1, 300}, {m.NoBid, 100}}}})
}

func missing(what string) sim.Refusal {
	return sim.Refusal{Kind: sim.NotFound, Detail: what + " not found"}
}

const maxPage = 1000

// cut takes the page that limit= and cursor= ask for; the cursor after the
// last page is empty.
func cut[T any](x *sim.Exchange, all []T) (page []T, cursor string, bad *sim.Refusal) {
	limit, begin := 100, 0
	if text := x.Query("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, "", &sim.Refusal{Kind: sim.BadRequest, Field: "limit", Detail: "limit is from 1 to 1000"}
		}
		limit = n
	}
	if text := x.Query("cursor"); text != "" {
		plain, _ := base64.RawURLEncoding.DecodeString(text)
		n, err := strconv.Atoi(string(plain))
		if err != nil || n < 0 || n > len(all) {
			return nil, "", &sim.Refusal{Kind: sim.BadRequest, Field: "cursor", Detail: "the cursor is not one of ours"}
		}
		begin = n
	}
	end := min(begin+limit, len(all))
	if end < len(all) {
		cursor = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return append([]T{}, all[begin:end]...), cursor, nil
}
