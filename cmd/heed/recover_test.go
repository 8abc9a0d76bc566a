package main

import (
	"encoding/json"
	"testing"
	"time"
)

func TestARecoverySaysWhatItWaitsFor(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		`{"recovery":{"phase":"normal"}}`: "",
		`{}`:                              "",
		`{"recovery":{"phase":"draining","since":"2026-07-01T11:59:59Z"}}`:                                                   "the calls in flight have to end first",
		`{"recovery":{"phase":"slow","since":"2026-07-01T11:00:00Z","window_seconds":60,"attempts":3,"attempts_wanted":10}}`: "only calls show whether it is well: 3 of 10 attempts in 1m0s",
		`{"recovery":{"phase":"slow","since":"2026-07-01T11:00:00Z","window_seconds":60,"attempts":20,"attempts_wanted":10,
			"throttled_share":0.05,"throttled_share_wanted":0.01}}`: "5 % of its answers are 429, not less than 1 %",
		`{"recovery":{"phase":"slow","since":"2026-07-01T11:00:00Z","window_seconds":60,"attempts":20,"attempts_wanted":10,
			"throttled_share_wanted":0.01,"remaining_share":0.1,"remaining_share_wanted":0.3}}`: "10 % of the quota are left, not more than 30 %",
		`{"recovery":{"phase":"slow","since":"2026-07-01T11:59:30Z","window_seconds":60,"attempts":20,"attempts_wanted":10,
			"throttled_share_wanted":0.01}}`: "it has to be well for 1m0s",
		`{"recovery":{"phase":"slow","since":"2026-07-01T11:00:00Z","window_seconds":60,"attempts":20,"attempts_wanted":10,
			"throttled_share_wanted":0.01}}`: "it has been well, and is about to end",
	} {
		var r recovering
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if _, got := r.lacks(now); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
