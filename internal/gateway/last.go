package gateway

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/token"
)

// blames are the ends that follow from what the last attempt came to. The others
// are decisions of our own.
var blames = map[heed.Reason]bool{
	heed.DeadlineExceeded: true, heed.RetryBudget: true, heed.AttemptsExhausted: true, heed.NotRepeatable: true,
	heed.BodyNotReplayable: true, heed.PermanentFailure: true, heed.InvalidAnswer: true, heed.TruncatedAnswer: true,
	heed.StaleAnswer: true, heed.RetryOff: true,
}

// explainEnd makes title and help of k fit what the last attempt came to: advice
// for a server that cannot be reached is wrong for one that answered.
func (k *kind) explainEnd(e *heed.Error) {
	f := lastFailure(e)
	switch {
	case e.Reason == heed.PermanentFailure && f == classify.NoFailure && e.Status != 0:
		k.title = "The upstream answered that the request is wrong"
		k.help = "Correct the request; repeating it as it is does not help."
	case e.Reason == heed.PermanentFailure && f == classify.BadRequest:
		k.title = "The request cannot be sent"
		k.help = "Correct its header fields and its method; repeating it as it is does not help."
	case f == classify.ProtocolError && (e.Reason == heed.AttemptsExhausted || e.Reason == heed.RetryOff):
		k.help = "Check that the url of the endpoint in heed.yaml is an HTTP API, with its scheme and port; if it is, try again later."
	case e.Reason == heed.StaleAnswer && strings.Contains(e.Report.Rule, "max_unmodified"):
		k.help = "Try again later, or raise verify.max_unmodified of the endpoint."
	}
}

const brokenChunks = "The body of the upstream's answer is not in chunks, as its head says it is (RFC 9112 §7.1): that is not HTTP"

// lastSaid tells in a sentence what was wrong with the last answer. Empty: there
// was none, and the title says it all.
func lastSaid(e *heed.Error) string {
	switch f := lastFailure(e); {
	case f == classify.ProtocolError && headFault(cause(e.Err)) == headTooLarge:
		return "The head of the upstream's answer is larger than what is read of one."
	case f == classify.ProtocolError:
		return "What the upstream sent is not HTTP."
	case f == classify.ResetBeforeHeader && errors.Is(e.Err, io.ErrUnexpectedEOF):
		return "The answer of the upstream ended within its head."
	case f == classify.BodyCut && bodyFault(cause(e.Err)) == notInChunks:
		return brokenChunks + "."
	case f != classify.NoFailure, e.Status == 0, e.Report.Rule == "":
		return ""
	}
	return fmt.Sprintf("The last answer had status %d; by the rule %q it is %s.", e.Status, e.Report.Rule, e.Class)
}

// tokenSaid tells why there is no credential. named: also where it was asked
// for, which clients elsewhere need not know.
func tokenSaid(err error, named bool) string {
	if errors.Is(err, token.ErrFixed) {
		return "The upstream does not accept the credential, which is a fixed one."
	}
	e, ok := errors.AsType[*token.Error](err)
	if !ok {
		return ""
	}
	var b strings.Builder
	b.WriteString("The issuer")
	if named && e.Host != "" {
		fmt.Fprintf(&b, ", %s%s,", e.Host, e.Path)
	}
	switch why := e.Why(); {
	case e.Status != 0:
		fmt.Fprintf(&b, " answered with status %d", e.Status)
		if e.Code != "" {
			fmt.Fprintf(&b, " (%s)", e.Code)
		}
		if why != "" {
			b.WriteString(": " + why)
		}
	case named && why != "":
		b.WriteString(" gave none: " + why)
	default:
		b.WriteString(" gave no answer")
	}
	b.WriteByte('.')
	return b.String()
}
