// Package oauth lets golang.org/x/oauth2 get the tokens of a token.Source, for
// grants that package token does not know. It stands apart so that the road
// itself imports nothing foreign.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/token"
)

// Func is a function that gets a new token, such as the Token method of a
// clientcredentials.Config. It must not return a cached one: a rejected token
// could then not be replaced before it expires.
type Func func(ctx context.Context) (*oauth2.Token, error)

// Fetch implements token.Fetcher.
func (f Func) Fetch(ctx context.Context, _ token.Token) (token.Token, error) {
	return convert(f(ctx))
}

// Fetcher returns a Fetcher that asks ts. Most TokenSources of oauth2 hold on
// to a token until shortly before it expires, and give it again even after a
// 401; where there is a choice, use Func.
//
// ts takes no context. When that of a Fetch ends first, ts is left running and
// the next Fetch waits for the same outcome.
func Fetcher(ts oauth2.TokenSource) token.Fetcher {
	return &source{ts: ts, free: make(chan struct{}, 1)}
}

type source struct {
	ts      oauth2.TokenSource
	free    chan struct{} // holds one value while a Fetch uses pending
	pending chan outcome
}

type outcome struct {
	token *oauth2.Token
	err   error
}

// Fetch implements token.Fetcher.
func (s *source) Fetch(ctx context.Context, _ token.Token) (token.Token, error) {
	select {
	case s.free <- struct{}{}:
	case <-ctx.Done():
		return token.Token{}, failed(context.Cause(ctx))
	}
	defer func() { <-s.free }()
	if s.pending == nil {
		s.pending = make(chan outcome, 1)
		go s.ask(s.pending)
	}
	select {
	case o := <-s.pending:
		s.pending = nil
		return convert(o.token, o.err)
	case <-ctx.Done():
		return token.Token{}, failed(context.Cause(ctx))
	}
}

// ask runs the TokenSource. It ends when that returns.
func (s *source) ask(to chan<- outcome) {
	o := outcome{err: failed(errors.New("the token source ended its goroutine"))}
	defer func() {
		if thrown := recover(); thrown != nil {
			o = outcome{err: failed(fmt.Errorf("the token source panicked with a %T", thrown))}
		}
		to <- o
	}()
	o.token, o.err = s.ts.Token()
}

func convert(t *oauth2.Token, err error) (token.Token, error) {
	if err != nil {
		return token.Token{}, told(err)
	}
	if t == nil || t.AccessToken == "" {
		return token.Token{}, failed(errors.New("the token source gave no token"))
	}
	return token.Token{Value: mask.Secret(t.Type() + " " + t.AccessToken), Expires: t.Expiry}, nil
}

// told turns an error of oauth2 into one that repeats no body and no URL.
func told(err error) *token.Error {
	const op = "oauth2 token"
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil {
		return token.Answered(op, e.Response.StatusCode, e.ErrorCode)
	}
	if e, ok := errors.AsType[*token.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return failed(e.Err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failed(err)
	}
	return failed(hidden{err})
}

// hidden is an error whose text may hold anything.
type hidden struct{ err error }

func (h hidden) Error() string { return fmt.Sprintf("the token source failed with a %T", h.err) }
func (h hidden) Unwrap() error { return h.err }

func failed(err error) *token.Error { return &token.Error{Op: "oauth2 token", Err: err} }
