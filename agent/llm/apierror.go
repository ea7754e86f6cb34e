package llm

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"ordeal/metrics"
)

// apiError is a provider's error object, with a status or inside a stream.
type apiError struct {
	Type, Code, Param, Message string
}

func (e apiError) Error() string { return e.String() }

func (e apiError) String() string {
	name := e.Type
	if e.Code != "" && e.Code != e.Type {
		name = strings.TrimPrefix(name+"/"+e.Code, "/")
	}
	return strings.Trim(name+": "+e.Message, ": ")
}

// parseError reads an error object in the forms providers and compatible
// servers use: {"error":{…}}, {"type":"error","error":{…}}, {"error":"text"},
// {"object":"error","message":…}. False means that data is none.
func parseError(data []byte) (apiError, bool) {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return apiError{}, false
	}
	var outer struct {
		Object string          `json:"object"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &outer) != nil {
		return apiError{}, false
	}
	if outer.Object == "error" {
		return errorFields(data), true
	}
	if len(outer.Error) == 0 || bytes.Equal(outer.Error, []byte("null")) {
		return apiError{}, false
	}
	var text string
	if json.Unmarshal(outer.Error, &text) == nil {
		return apiError{Message: text}, true
	}
	return errorFields(outer.Error), true
}

// errorFields reads the fields that are there; a code may be a number.
func errorFields(data []byte) apiError {
	var in struct {
		Type, Code, Param, Message json.RawMessage
		Details                    struct {
			Code json.RawMessage `json:"error_code"`
		}
	}
	if json.Unmarshal(data, &in) != nil {
		return apiError{Message: string(data)}
	}
	e := apiError{Type: scalar(in.Type), Code: scalar(in.Code), Param: scalar(in.Param), Message: scalar(in.Message)}
	if e.Code == "" {
		e.Code = scalar(in.Details.Code)
	}
	return e
}

// scalar is the text of a JSON string or number, empty for null and nothing.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// names reports that the error is about a field of the request: by its param,
// or by the field's quoted name in the message of a server that gives none.
func (e apiError) names(field string) bool {
	if e.Param != "" {
		return e.Param == field
	}
	for _, quoted := range []string{"'" + field + "'", `"` + field + `"`, "`" + field + "`"} {
		if strings.Contains(e.Message, quoted) {
			return true
		}
	}
	return false
}

// used reports a quota that will not refill within minutes.
func (e apiError) used() bool { return spent[e.Code] || spent[e.Type] }

var spent = map[string]bool{
	"insufficient_quota": true, "credit_balance_exhausted": true, "organization_spend_limit_exceeded": true,
	"project_spend_limit_exceeded": true, "organization_usage_limit_exceeded": true, "enforced_spend_limit_reached": true,
	"contract_spend_limit_reached": true,
}

func (e apiError) overloaded() bool {
	for _, word := range []string{e.Code, e.Type} {
		switch word {
		case "overloaded_error", "server_is_overloaded", "slow_down":
			return true
		}
	}
	return false
}

// outcome classifies an error that came without a status of its own.
func (e apiError) outcome() metrics.Outcome {
	if e.overloaded() || e.used() {
		return metrics.RateLimited
	}
	if status, err := strconv.Atoi(e.Code); err == nil && status >= 400 && status < 600 {
		return statusOutcome(status, false)
	}
	for _, word := range []string{e.Code, e.Type} {
		switch word {
		case "rate_limit_error", "rate_limit_exceeded", "requests", "tokens":
			return metrics.RateLimited
		case "authentication_error", "permission_error", "invalid_api_key":
			return metrics.AuthRequired
		case "content_filter":
			return metrics.InvalidResponse
		case "invalid_request_error", "not_found_error", "request_too_large", "conflict_error", "billing_error",
			"model_not_found", "context_length_exceeded", "BadRequestError":
			return metrics.ProtocolError
		}
	}
	return metrics.ServerError
}

// statusOutcome maps every status but 200.
func statusOutcome(status int, retryAfter bool) metrics.Outcome {
	switch {
	case status == http.StatusRequestTimeout:
		return metrics.Timeout
	case status == http.StatusTooManyRequests, status == 529, status == http.StatusServiceUnavailable && retryAfter:
		return metrics.RateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return metrics.AuthRequired
	case status >= 500:
		return metrics.ServerError
	case status >= 400:
		return metrics.ProtocolError
	}
	return metrics.InvalidResponse
}
