package provider

import (
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/provider/sheet"
)

// Hint is a source of hints and where it is known from.
type Hint struct {
	hint.Source
	// Bucket is the bucket of the profile that it tells of.
	Bucket string
	Fact
}

func (t *Terms) hintFields(one func(*Hint) sheet.Block) sheet.Block {
	h := &t.Policy.Hints
	return sheet.Block{Fields: []sheet.Field{
		{Name: "jitter_max", Doc: "The most that is added to a wait the server asked for. 0s: nothing. Default 1s.",
			Value: sheet.DurationZero(&h.JitterMax, -1)},
		{Name: "jitter_ratio", Doc: "The same, as a part of the wait. 0: nothing. Default 0.1.",
			Value: sheet.Never(&h.JitterRatio, sheet.Float(&h.JitterRatio, 0, 10))},
		{Name: "sources", Doc: "Headers of the provider; the standard ones stand behind them.",
			Value: sheet.Append(&t.Hints, func(s *Hint) sheet.Value { return one(s) })},
	}}
}

// Fields is the table of one entry of hints.sources.
func (h *Hint) Fields() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "header", Doc: "The name of the header.", Required: true, Value: Header(&h.Header)},
		{Name: "field", Doc: "What it tells.", Required: true, Value: sheet.OneOf(&h.Field, hint.Wait, hint.Remaining,
			hint.Limit, hint.Reset, hint.Used, hint.Window, hint.Quota)},
		{Name: "format", Doc: "How it is written.", Required: true, Value: formats(&h.Format)},
		{Name: "key", Doc: "The member of a key_value list.", Value: sheet.Text(&h.Key)},
		{Name: "ignore", Doc: "Values that mean nothing, such as -1.", Value: sheet.Texts(&h.Ignore)},
		{Name: "observe_only", Doc: "Keep the value out of decisions.", Value: sheet.If(h.ObserveOnly, sheet.Bool(&h.ObserveOnly))},
	}, h.Fact.fields()...)}
}

// told is the table of one entry of hints.sources in a profile.
func (h *Hint) told() sheet.Block {
	b := h.Fields()
	b.Fields = append(b.Fields, sheet.Field{Name: "bucket", Doc: "The id of the bucket that it tells of: told, not acted on.",
		Value: sheet.Text(&h.Bucket)})
	return b
}
