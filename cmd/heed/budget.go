package main

import (
	"errors"
	"strings"
	"time"
)

// budget is a time as Heed-Budget takes it too: 90s, 1m30s, 90 or 1.5.
type budget time.Duration

// UnmarshalText reads text; a bare number is seconds.
func (b *budget) UnmarshalText(text []byte) error {
	s := string(text)
	if strings.Trim(s, "0123456789.") == "" {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return errors.New("write a positive duration such as 90s or 5m, or a number of seconds")
	}
	*b = budget(d)
	return nil
}
