package oauth_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"golang.org/x/oauth2/clientcredentials"

	"github.com/heedproject/heed/token"
	"github.com/heedproject/heed/token/oauth"
)

func ExampleFunc() {
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"t1","token_type":"bearer","expires_in":3600}`)
	}))
	defer issuer.Close()
	config := &clientcredentials.Config{ClientID: "id", ClientSecret: "secret", TokenURL: issuer.URL}
	source := &token.Source{Fetcher: oauth.Func(config.Token)}
	defer source.Close()
	tok, err := source.Current(context.Background())
	fmt.Println(string(tok.Value), err)
	// Output: Bearer t1 <nil>
}
