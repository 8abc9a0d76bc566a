package classify

import (
	"testing"
	"time"
)

// turn is the next turn in a zone after an instant of its wall clock.
func turn(t *testing.T, zone string, every Period, at string) string {
	t.Helper()
	in, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	now, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	c := Calendar{Every: every, In: in}
	return c.next(now).In(in).Format(time.RFC3339)
}

func TestACalendarTurnsWhereTheClockOnTheWallJumps(t *testing.T) {
	for _, row := range []struct {
		name, zone string
		every      Period
		at, want   string
	}{
		{"the hour after one is three", "America/New_York", Hourly, "2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00"},
		{"the hour from one to two comes again", "America/New_York", Hourly, "2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00"},
		{"the last hour of a day that ends at one of the next", "America/Santiago", Hourly, "2026-09-05T23:30:00-04:00", "2026-09-06T01:00:00-03:00"},
		{"a day begins at one", "America/Santiago", Daily, "2026-09-05T22:00:00-04:00", "2026-09-06T01:00:00-03:00"},
		{"a day has 25 hours", "America/Santiago", Daily, "2026-04-04T23:30:00-03:00", "2026-04-05T00:00:00-04:00"},
		{"a day was left out", "Pacific/Apia", Daily, "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"a month begins in summer", "Europe/Berlin", Monthly, "2026-03-15T12:00:00+01:00", "2026-04-01T00:00:00+02:00"},
		{"half an hour is left out", "Australia/Lord_Howe", Hourly, "2026-10-04T01:45:00+10:30", "2026-10-04T02:30:00+11:00"},
		{"half an hour comes twice", "Australia/Lord_Howe", Hourly, "2026-04-05T01:45:00+11:00", "2026-04-05T02:00:00+10:30"},
		{"zones with half hours", "Asia/Kolkata", Hourly, "2026-11-30T12:10:00+05:30", "2026-11-30T13:00:00+05:30"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := turn(t, row.zone, row.every, row.at); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestATurnOfACalendarAlwaysLiesAhead(t *testing.T) {
	for _, zone := range []string{"America/New_York", "America/Santiago", "Atlantic/Azores", "Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe"} {
		in, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, every := range []Period{Hourly, Daily, Monthly} {
			c := Calendar{Every: every, In: in}
			now := time.Date(2026, 1, 1, 0, 7, 0, 0, time.UTC)
			for range 366 * 24 {
				if next := c.next(now); !next.After(now) {
					t.Fatalf("%s, every %s: the turn after %v is %v", zone, every, now.In(in), next)
				}
				now = now.Add(time.Hour)
			}
		}
	}
}
