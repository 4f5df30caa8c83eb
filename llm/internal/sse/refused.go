package sse

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
)

// Refused makes a failure of an answer that is not 200.
func Refused(status int, h http.Header, body []byte) *llm.Failure {
	message, kind, _ := ErrorText(body)
	switch {
	case message == "":
		message = plain.Line(withoutTags(string(body)), limits.Preview)
	case strings.HasPrefix(strings.TrimSpace(message), "<"):
		message = plain.Line(withoutTags(message), limits.Preview)
	}
	if message == "" {
		message = http.StatusText(status)
	}
	f := &llm.Failure{Code: Code(status, kind, message), Message: plain.Error(message), Status: status, RequestID: requestID(h)}
	if f.RequestID == "" {
		var top struct {
			RequestID string `json:"request_id"`
		}
		if json.Unmarshal(body, &top) == nil {
			f.RequestID = plain.Line(top.RequestID, 100)
		}
	}
	f.RetryAfterMs = retryAfter(h, body, time.Now())
	if f.Code == "HTTP_404" || f.Code == "HTTP_405" {
		f.Message += "; if this is not the address of an API, check the base URL"
	}
	f.Permanent = h.Get("X-Should-Retry") == "false"
	return f
}

// tags are what a page has beside its text.
var tags = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?is)<script\b.*?</script>|<style\b.*?</style>|<!--.*?-->|<[a-z/!?][^>]*(?:>|$)`)
})

// withoutTags is the text of a page; of what is no page, all.
func withoutTags(page string) string {
	if !strings.HasPrefix(strings.TrimSpace(page), "<") {
		return page
	}
	return tags().ReplaceAllString(page, " ")
}

// redirected says where an answer points to that nobody follows.
func redirected(host string, res *http.Response) string {
	to := "elsewhere"
	if u, err := res.Location(); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		to = "to " + plain.Line(u.String(), limits.Preview)
	}
	return fmt.Sprintf("the server%s points %s, and a request with a key goes nowhere but where it was sent; if that is the right place, make it the base URL", after(host), to)
}

// after is a word after another one, if there is one.
func after(word string) string {
	if word == "" {
		return ""
	}
	return " " + word
}

// InStream makes a failure of an error object inside a stream that began well.
// ok is false when the text holds no error.
func InStream(data []byte) (f *llm.Failure, ok bool) {
	message, kind, status := ErrorText(data)
	if message == "" && kind == "" {
		return nil, false
	}
	if message == "" {
		message = kind
	}
	code := Code(status, kind, message)
	if status == 0 {
		code = codeOfKind(kind, message)
	}
	f = &llm.Failure{Code: code, Message: plain.Error(message), Status: status}
	f.RetryAfterMs = retryAfter(nil, data, time.Now())
	return f, true
}

// Code returns the failure's code for a status and what the server says.
func Code(status int, kind, message string) string {
	text := strings.ToLower(kind + " " + message)
	switch {
	case status == 402 || isQuota(text):
		return llm.CodeQuota
	case status == 401 || status == 403:
		return llm.CodeAuth
	case status == 429:
		return llm.CodeRateLimit
	case status == 413 || (status == 400 || status == 422 || status >= 500) && isContext(text):
		return llm.CodeContextWindow
	case strings.Contains(text, "requires --jinja"): // llama-server says 500, and will for ever
		return llm.CodeInvalidRequest
	case status == 400 && strings.Contains(text, "incorrect api key"):
		return llm.CodeAuth
	case status == 404 && strings.Contains(text, "model"):
		return llm.CodeUnknownModel
	case status == 400 || status == 422:
		return llm.CodeInvalidRequest
	case status == 408:
		return llm.CodeTimeout
	case status >= 500:
		return llm.CodeServer
	}
	return "HTTP_" + strconv.Itoa(status)
}

func codeOfKind(kind, message string) string {
	text := strings.ToLower(kind + " " + message)
	switch {
	case isQuota(text):
		return llm.CodeQuota
	case strings.Contains(text, "rate_limit") || strings.Contains(text, "rate limit"):
		return llm.CodeRateLimit
	case isContext(text):
		return llm.CodeContextWindow
	case strings.Contains(text, "authentication") || strings.Contains(text, "permission_error"):
		return llm.CodeAuth
	case strings.Contains(text, "invalid_request") || strings.Contains(text, "tool_use_failed") || strings.Contains(text, "tool call validation failed"):
		return llm.CodeInvalidRequest
	case strings.Contains(text, "timeout"):
		return llm.CodeTimeout
	}
	return llm.CodeServer
}

func isQuota(text string) bool {
	return containsAny(text, "insufficient_quota", "exceeded your current quota", "insufficient balance", "credit balance", "billing", "insufficient credits")
}

func isContext(text string) bool {
	return containsAny(text, "context length", "context window", "context size", "context_length", "exceed_context",
		"prompt is too long", "prompt too long", "max context", "too many tokens", "input is too long")
}

func containsAny(s string, subs ...string) bool {
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}

// ErrorText finds the message, the kind and the status in what a server calls an
// error: an object, a string, flat keys, or nothing of these ("").
func ErrorText(body []byte) (message, kind string, status int) {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil {
		return "", "", 0
	}
	if inner := top["error"]; len(inner) > 0 && string(inner) != "null" {
		var s string
		if json.Unmarshal(inner, &s) == nil {
			return s, word(top["code"]), 0
		}
		var in map[string]json.RawMessage
		if json.Unmarshal(inner, &in) != nil {
			return string(inner), "", 0
		}
		message, kind, status = fields(in)
		if raw := upstream(in["metadata"]); raw != "" {
			message += ": " + raw
		}
		if message == "" {
			message = string(inner)
		}
		return message, kind, status
	}
	if d := word(top["detail"]); d != "" {
		return d, "", 0
	}
	if m := word(top["error_message"]); m != "" || top["error_type"] != nil {
		return m, word(top["error_type"]), 0
	}
	if word(top["object"]) == "error" || (top["choices"] == nil && top["message"] != nil && (top["code"] != nil || word(top["type"]) == "error")) {
		return fields(top)
	}
	return "", "", 0
}

func fields(in map[string]json.RawMessage) (message, kind string, status int) {
	kind = strings.TrimSpace(word(in["type"]) + " " + word(in["code"]))
	for _, key := range []string{"code", "status", "raw_status_code"} {
		if n, err := strconv.Atoi(word(in[key])); err == nil && n >= 400 && n < 600 {
			status = n
			break
		}
	}
	return word(in["message"]), kind, status
}

// upstream is what a router was told by the server behind it.
func upstream(metadata json.RawMessage) string {
	var m struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return ""
	}
	raw := word(m.Raw)
	if message, _, _ := ErrorText([]byte(raw)); message != "" {
		return message
	}
	return raw
}

// word is a JSON string's or number's text, "" for anything else.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// retryAfter reads how long the server asks to wait, in milliseconds: the
// longest of what it says, since of two wishes the shorter one is no use.
func retryAfter(h http.Header, body []byte, now time.Time) *int64 {
	wait, found := time.Duration(0), false
	ask := func(d time.Duration) {
		wait, found = max(wait, d, 0), true
	}
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		ask(duration(ms, time.Millisecond))
	}
	if s := h.Get("Retry-After"); s != "" {
		if secs, err := strconv.ParseFloat(s, 64); err == nil {
			ask(duration(secs, time.Second))
		} else if at, err := http.ParseTime(s); err == nil {
			ask(at.Sub(now))
		}
	}
	if !found {
		for _, name := range []string{"Anthropic-Ratelimit-Requests", "Anthropic-Ratelimit-Tokens"} {
			if at, err := time.Parse(time.RFC3339, h.Get(name+"-Reset")); err == nil && h.Get(name+"-Remaining") == "0" {
				ask(at.Sub(now))
			}
		}
		var b struct {
			Error struct {
				Metadata struct {
					Headers map[string]string `json:"headers"`
				} `json:"metadata"`
			} `json:"error"`
		}
		if json.Unmarshal(body, &b) == nil {
			if ms, err := strconv.ParseFloat(b.Error.Metadata.Headers["X-RateLimit-Reset"], 64); err == nil {
				ask(time.UnixMilli(int64(ms)).Sub(now))
			}
		}
	}
	if !found {
		return nil
	}
	ms := wait.Milliseconds()
	return &ms
}

func duration(n float64, unit time.Duration) time.Duration {
	if math.IsNaN(n) || n < 0 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(24*time.Hour)))
}

func requestID(h http.Header) string {
	for _, k := range []string{"Request-Id", "X-Request-Id", "X-Ds-Trace-Id"} {
		if id := h.Get(k); id != "" {
			return plain.Line(id, 100)
		}
	}
	return ""
}
