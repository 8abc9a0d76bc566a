package check

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/heedproject/heed/sim"
)

// issuer makes bearer tokens for a gateway that has one for all cases: it asks
// at /oauth/token of the address where the worlds are served, and names no case.
type issuer struct {
	mu     sync.Mutex
	number map[string]int // of each token that was made, from 1
}

// ServeHTTP makes a token.
func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "heed check: ask for a token by POST", http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number == nil {
		s.number = map[string]int{}
	}
	token := "tok-shared-" + strconv.Itoa(len(s.number)+1)
	s.number[token] = len(s.number) + 1
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(tokenAnswer(token).Body) // who asked may be gone
}

// made counts the tokens.
func (s *issuer) made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.number)
}

// after tells whether the token was made when there were n already.
func (s *issuer) after(token string, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number[token] > n
}

// tokenAnswer is how a token is given (RFC 6749 §5.1).
func tokenAnswer(token string) sim.Answer {
	return sim.JSON(http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
}
