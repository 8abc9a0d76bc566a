package rate

import (
	"strings"
	"testing"
	"time"
)

func TestAWindowBeginsAtAnInstantOfTheWall(t *testing.T) {
	l := Limit{Kind: FixedWindow, Window: time.Hour}
	if got := l.begin(time.Now()).String(); strings.Contains(got, "m=") {
		t.Errorf("the begin has a monotonic reading: %s", got)
	}
}
