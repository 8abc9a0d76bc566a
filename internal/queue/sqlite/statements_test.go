package sqlite_test

import (
	"testing"

	"github.com/heedproject/heed/internal/queue/sqlite"
)

func TestEveryStatementIsListedAndHasAText(t *testing.T) {
	fields, listed, empty := sqlite.Statements()
	if listed != fields || empty != 0 {
		t.Errorf("statements: got %d listed and %d without a text, want all %d listed, each with one", listed, empty, fields)
	}
}
