package queue

import (
	"context"
	"fmt"
)

// Beginner is a Feed that keeps in mind which of the claimed calls were begun.
// A call that was not, and whose worker died, was certainly not sent: it is
// queued again, whatever it is.
type Beginner interface {
	// Begin says, before anything of them is sent, that calls are begun. The
	// ids of those whose lease was lost are returned: they must not be sent.
	Begin(ctx context.Context, claims []Claim) (lost []string, err error)
}

type beginKey struct{}

// Begin is for whoever sends a call that a Worker with Begins set has handed
// out: it is called right before anything leaves, under the context of Send.
// With an error nothing may be sent. Of a call that may be repeated anyway,
// and outside of a worker, it does nothing. It may be called again.
func Begin(ctx context.Context) error {
	if begin, ok := ctx.Value(beginKey{}).(func(context.Context) error); ok {
		return begin(ctx)
	}
	return nil
}

// beginning gives Begin what it needs. A claim under way is on the disk when
// it returns, whatever becomes of ctx.
func beginning(ctx context.Context, b Beginner, c Claim) context.Context {
	begun := false // Send is one goroutine's
	return context.WithValue(ctx, beginKey{}, func(ctx context.Context) error {
		if begun {
			return nil
		}
		lost, err := b.Begin(ctx, []Claim{c})
		if err != nil {
			return fmt.Errorf("begin call %s: %w", c.ID, err)
		}
		if len(lost) > 0 {
			return fmt.Errorf("begin call %s: %w", c.ID, ErrLeaseLost)
		}
		begun = true
		return nil
	})
}
