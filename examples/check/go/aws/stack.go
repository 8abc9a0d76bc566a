package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// operation makes one call as the generated clients of the SDK do: a stack that
// makes the request, the SDK's own retry middleware around each attempt, and an
// end that makes an error of what is no success.
func operation(client smithyhttp.ClientDo, retryer aws.Retryer, r *http.Request) (*http.Response, error) {
	stack := middleware.NewStack("operation", smithyhttp.NewStackRequest)
	attempt := retry.NewAttemptMiddleware(retryer, smithyhttp.RequestCloner)
	if err := stack.Serialize.Add(request{r}, middleware.After); err != nil {
		return nil, err
	}
	if err := stack.Finalize.Add(attempt, middleware.After); err != nil {
		return nil, err
	}
	if err := stack.Deserialize.Add(answer{}, middleware.After); err != nil {
		return nil, err
	}
	out, _, err := middleware.DecorateHandler(smithyhttp.NewClientHandler(client), stack).Handle(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	return out.(*http.Response), nil
}

// request writes the request of a call.
type request struct{ r *http.Request }

func (request) ID() string { return "OperationSerializer" }

func (q request) HandleSerialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	out middleware.SerializeOutput, md middleware.Metadata, err error,
) {
	to := in.Request.(*smithyhttp.Request) // smithyhttp.NewStackRequest has made it
	to.Method, to.URL, to.Header = q.r.Method, q.r.URL, q.r.Header
	if q.r.ContentLength > 0 {
		body, err := q.r.GetBody()
		if err != nil {
			return out, md, err
		}
		data, err := io.ReadAll(body)
		if err != nil {
			return out, md, err
		}
		if to, err = to.SetStream(bytes.NewReader(data)); err != nil {
			return out, md, err
		}
		to.ContentLength = q.r.ContentLength
	}
	in.Request = to
	return next.HandleSerialize(ctx, in)
}

// answer reads the answer to an attempt.
type answer struct{}

func (answer) ID() string { return "OperationDeserializer" }

func (answer) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	out middleware.DeserializeOutput, md middleware.Metadata, err error,
) {
	if out, md, err = next.HandleDeserialize(ctx, in); err != nil {
		return out, md, err
	}
	resp := out.RawResponse.(*smithyhttp.Response)
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return out, md, &smithy.DeserializationError{Err: fmt.Errorf("the answer cannot be read: %w", err)}
	}
	if resp.StatusCode/100 == 2 {
		resp.Response.Body = http.NoBody
		out.Result = resp.Response
		return out, md, nil
	}
	code := "UnknownError"
	if resp.StatusCode == http.StatusTooManyRequests {
		code = "TooManyRequestsException" // as services of AWS name it
	}
	return out, md, &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: resp, Err: &smithy.GenericAPIError{Code: code, Message: resp.Status}}}
}
