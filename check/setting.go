package check

import (
	"strconv"
	"time"
)

// baseNames are the variables by which programs and SDKs are told another base
// URL.
var baseNames = []string{"HEED_CHECK_URL", "BASE_URL", "API_BASE_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL",
	"STRIPE_API_BASE", "GITHUB_API_URL", "AWS_ENDPOINT_URL"}

// keyNames are the variables by which they are told the credential.
var keyNames = []string{"HEED_CHECK_API_KEY", "API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "STRIPE_API_KEY", "GITHUB_TOKEN"}

// environ is what a session adds to the environment of its programs.
func (s Setting) environ() []string {
	env := []string{markName + "=" + s.mark(), "HEED_CHECK_CASE=" + s.Case, "HEED_CHECK_SEED=" + strconv.FormatUint(s.Seed, 10)}
	for _, n := range baseNames {
		env = append(env, n+"="+s.BaseURL)
	}
	for _, n := range keyNames {
		env = append(env, n+"="+s.APIKey)
	}
	if s.TokenURL != "" {
		env = append(env, "HEED_CHECK_TOKEN_URL="+s.TokenURL)
	}
	if s.Provider != "" {
		env = append(env, "HEED_CHECK_PROVIDER="+s.Provider)
	}
	if s.Deadline > 0 {
		env = append(env, "HEED_CHECK_DEADLINE="+seconds(s.Deadline))
	}
	return env
}

// unproxied keeps a proxy of the environment from what is of this machine.
func unproxied(env []string) []string {
	var add []string
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		list := "127.0.0.1,localhost,::1"
		for _, v := range env {
			if n, have := cut(v, "="); n == name && have != "" {
				list = have + "," + list
				break
			}
		}
		add = append(add, name+"="+list)
	}
	return add
}

// seconds writes a duration as programs take it; with none, a minute.
func seconds(d time.Duration) string {
	if d <= 0 {
		d = time.Minute
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// mark names the session among all others of all runs.
func (s Setting) mark() string { return s.id }
