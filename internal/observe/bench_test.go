package observe

import (
	"io"
	"testing"

	"github.com/heedproject/heed"
)

func bench(b *testing.B, opts Options, e heed.Event) {
	o, err := New(opts)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		o.Observe(e)
	}
	if err := o.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	if o.sink != nil {
		dropped, _ := o.sink.counts()
		b.ReportMetric(float64(dropped)/float64(b.N), "dropped/op")
	}
}

func BenchmarkAttempt(b *testing.B)   { bench(b, Options{Log: io.Discard}, throttled()) }
func BenchmarkCall(b *testing.B)      { bench(b, Options{Log: io.Discard}, served()) }
func BenchmarkCallText(b *testing.B)  { bench(b, Options{Log: io.Discard, Format: "text"}, served()) }
func BenchmarkCountOnly(b *testing.B) { bench(b, Options{}, served()) }
func BenchmarkAttemptCounted(b *testing.B) {
	bench(b, Options{Log: io.Discard, Attempts: None}, throttled())
}
