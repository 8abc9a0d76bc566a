package token_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heedproject/heed/token"
)

// issues is a Fetcher of one's own.
type issues struct{ made int }

func (i *issues) Fetch(context.Context, token.Token) (token.Token, error) {
	i.made++
	return token.Token{Header: "X-Session", Value: "s3cret", Expires: time.Now().Add(time.Hour)}, nil
}

func ExampleSource() {
	f := &issues{}
	source := &token.Source{Fetcher: f}
	defer source.Close()
	ctx := context.Background()
	old, err := source.Current(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, _ := source.Current(ctx)
	fmt.Println(f.made, old.Issued.Equal(again.Issued), old.Value)

	fresh, _ := source.Renew(ctx, old) // the server said 401
	fmt.Println(f.made, fresh.Issued.After(old.Issued))
	// Output:
	// 1 true [secret]
	// 2 true
}
