package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/dsh-go/dsh/limits"
)

// read reads a response to its end and closes it.
func read(ctx context.Context, u *url.URL, resp *http.Response, r FetchRequest) (FetchResult, error) {
	defer func() { _ = resp.Body.Close() }() // all that counts is read
	declared := resp.Header.Get("Content-Type")
	media := mediaType(declared)
	result := FetchResult{URL: u.String(), StatusCode: resp.StatusCode, ContentType: media, Body: FetchBody{Kind: BodyText}}
	if r.Method == MethodHead || resp.ContentLength == 0 {
		return result, nil
	}
	if media != "" && media != octets && !textual(media) {
		return result, unsupported(u, resp.StatusCode, media)
	}
	body, err := readBody(ctx, u, resp, r.MaxBytes)
	if err != nil || len(body) == 0 {
		return result, err
	}
	if media == "" || media == octets { // nobody said what it is
		declared = http.DetectContentType(body)
		if media = mediaType(declared); !textual(media) {
			return result, unsupported(u, resp.StatusCode, media)
		}
	}
	isHTML := media == "text/html" || media == "application/xhtml+xml"
	text := decode(body, declared, isHTML)
	if isHTML {
		result.Body.Kind = BodyHTML
		if r.Format != FormatRaw {
			if text, err = convert(ctx, text, u, r.Format); err != nil {
				return result, err
			}
			result.Body.Kind = BodyText
		}
	}
	result.Body.Content, result.Truncated = cut(text, r.MaxChars)
	return result, nil
}

// readBody reads at most most bytes of the unpacked body, whatever its declared length.
func readBody(ctx context.Context, u *url.URL, resp *http.Response, most int) ([]byte, error) {
	if packed := resp.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return nil, fail(CodeUnsupportedType, "%s is packed as %s, although only gzip was asked for", shown(u.String()), shown(packed))
	}
	large := func() error {
		return fail(CodeTooLarge, "the body of %s is larger than %d bytes (maxBytes, at most %d)", shown(u.String()), most, limits.WebBody)
	}
	if resp.ContentLength > int64(most) {
		return nil, large()
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if len(body) > most {
		return nil, large()
	}
	if err == nil {
		return body, nil
	}
	if over := ended(ctx, CodeTimeout, "the fetch of "+shown(u.String())); over != nil {
		return nil, over
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fail(CodeFetchFailed, "the body of %s ended before it was complete: %w", shown(u.String()), err)
	}
	return nil, fail(CodeFetchFailed, "the body of %s could not be read: %w", shown(u.String()), err)
}

const octets = "application/octet-stream"

// mediaType is the type of a Content-Type, without its parameters.
func mediaType(declared string) string {
	media, _, err := mime.ParseMediaType(declared)
	if err != nil && media == "" {
		media, _, _ = strings.Cut(strings.ToLower(declared), ";")
	}
	return shown(media)
}

// texts are types that are text although they do not say so.
var texts = []string{
	"application/ecmascript", "application/graphql", "application/javascript", "application/json",
	"application/jsonl", "application/jwt", "application/ld+json", "application/ndjson", "application/rtf",
	"application/sql", "application/toml", "application/typescript", "application/x-javascript",
	"application/x-ndjson", "application/x-sh", "application/x-www-form-urlencoded", "application/x-yaml",
	"application/xml", "application/yaml",
}

func textual(media string) bool {
	return strings.HasPrefix(media, "text/") || slices.Contains(texts, media) ||
		strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "+yaml")
}

func unsupported(u *url.URL, status int, media string) error {
	return fail(CodeUnsupportedType, "%s (status %d) is %s, and fetch reads only text: HTML, JSON, XML, plain text and the like",
		shown(u.String()), status, media)
}

// decode gives a body as UTF-8.
func decode(body []byte, contentType string, isHTML bool) string {
	e, name, certain := charset.DetermineEncoding(body, contentType)
	if !certain {
		// DetermineEncoding looks at the first 1024 bytes only, and takes what
		// is ASCII so far for windows-1252. Only HTML declares its charset inside.
		switch {
		case utf8.Valid(body) && (!isHTML || name == "windows-1252"):
			name = "utf-8"
		case !isHTML:
			e, name = charset.Lookup("windows-1252")
		}
	}
	if name != "utf-8" {
		if decoded, err := e.NewDecoder().Bytes(body); err == nil {
			body = decoded
		}
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	return strings.ToValidUTF8(string(body), "\ufffd")
}

// cut gives at most most characters of s, and whether that is less than all.
func cut(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	for i := range s {
		if most == 0 {
			return s[:i], true
		}
		most--
	}
	return s, false
}
