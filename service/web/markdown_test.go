package web

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

const page = `<!doctype html><html><head><title>T</title><style>p{}</style><script>alert(1)</script></head><body>
<nav><a href="/home">Home</a></nav>
<h1>Title   here</h1>
<p>First <b>bold</b> and <a href="sub/x?a=1&amp;b=2">link</a>.<br>Next line</p>
<ul><li>one</li><li>two</li></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre><code class="language-go">x :=  1
y</code></pre><noscript>no</noscript><svg><text>pic</text></svg>
<img src="i.png" alt="A"></body></html>`

func convertPage(t *testing.T, page string, format FetchFormat) string {
	t.Helper()
	u, _ := url.Parse("https://example.com/dir/page")
	got, err := convert(t.Context(), page, u, format)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestMarkdown(t *testing.T) {
	want := `[Home](https://example.com/home)

# Title here

First **bold** and [link](https://example.com/dir/sub/x?a=1&b=2).  
Next line

- one
- two

| a | b |
|---|---|
| 1 | 2 |

` + "```go\nx :=  1\ny\n```" + `

pic ![A](https://example.com/dir/i.png)`
	if d := cmp.Diff(want, convertPage(t, page, FormatMarkdown)); d != "" {
		t.Error(d)
	}
	got := convertPage(t, `<head><base href="https://cdn.example/v/"></head><a href="y">l</a><base href="http://ignored/">`, FormatMarkdown)
	if got != "[l](https://cdn.example/v/y)" {
		t.Error(got)
	}
	if got := convertPage(t, `<base href="javascript:x"><a href="y">l</a>`, FormatMarkdown); got != "[l](https://example.com/dir/y)" {
		t.Error(got)
	}
}

func TestVisible(t *testing.T) {
	want := `Home

Title here

First bold and link.
Next line

one
two

a b
1 2

x :=  1
y`
	if d := cmp.Diff(want, convertPage(t, page, FormatText)); d != "" {
		t.Error(d)
	}
	for in, want := range map[string]string{
		"":                             "",
		"a<script>b":                   "a",
		"a<p>b":                        "a\n\nb",
		"<b>a</b><i>b</i>":             "ab",
		"<td>a":                        "a",
		"a&lt;b&gt;&nbsp;c":            "a<b> c",
		"<pre>\n a\n  b</pre>c":        " a\n  b\n\nc",
		"<textarea>x</textarea>y":      "y",
		"x<br><br><br><br>y":           "x\n\ny",
		"<template><p>t</template>end": "end",
	} {
		if got := convertPage(t, in, FormatText); got != strings.TrimSpace(want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// hostile pages kept the converter busy, or could. Each is of about n bytes.
var hostile = map[string]func(n int) string{
	"deep":        func(n int) string { return strings.Repeat("<div>", n/5) },
	"deep-inline": func(n int) string { return strings.Repeat("<b>", n/3) },
	"formatting":  func(n int) string { return strings.Repeat("<b><p>", n/6) },
	"tables":      func(n int) string { return strings.Repeat("<table><tr><td>", n/15) },
	"wide":        func(n int) string { return strings.Repeat("<i>x</i>", n/8) },
	"items":       func(n int) string { return "<ul>" + strings.Repeat("<li>x", n/5) },
	"links":       func(n int) string { return strings.Repeat("<a href=x>y</a>", n/15) },
	"rows":        func(n int) string { return "<table>" + strings.Repeat("<tr><td>x<td>y", n/14) },
	"columns":     func(n int) string { return "<table><tr>" + strings.Repeat("<td>x", n/5) },
	"span":        func(n int) string { return "<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=65534>x", n/36) },
	"text":        func(n int) string { return strings.Repeat("a_*[`b ", n/7) },
	"ticks":       func(n int) string { return "<code>" + strings.Repeat("`", n) },
	"attributes":  func(n int) string { return "<p " + strings.Repeat("a ", n/2) + ">" },
	"space":       func(n int) string { return "a" + strings.Repeat(" ", n) + "b" },
	"breaks":      func(n int) string { return strings.Repeat("<br>", n/4) },
	"foster":      func(n int) string { return "<table>" + strings.Repeat("x<b>", n/4) },
	"select":      func(n int) string { return "<select>" + strings.Repeat("<option>x", n/9) },
	"comments":    func(n int) string { return strings.Repeat("<!--x-->y", n/9) },
	"entities":    func(n int) string { return strings.Repeat("&lt;", n/4) },
	"quotes":      func(n int) string { return strings.Repeat("<blockquote>x</blockquote>", n/26) },
	"emphasis":    func(n int) string { return strings.Repeat("<b><em>", 120) + strings.Repeat("x<br>", n/5) },
	"quotes-deep": func(n int) string { return strings.Repeat("<blockquote>", 400) + strings.Repeat("x<br>", n/5) },
	"wide-cell": func(n int) string {
		return "<table><tr><td>" + strings.Repeat("x", n/2) + strings.Repeat("<tr><td>y", n/18)
	},
	"pre-deep":      func(n int) string { return strings.Repeat("<ul><li>", 200) + "<pre>" + strings.Repeat("x\n", n/2) },
	"list-start":    func(n int) string { return "<ol start=9223372036854775800>" + strings.Repeat("<li>x", n/5) },
	"code-ticks":    func(n int) string { return strings.Repeat("<code>`</code>,", n/15) },
	"fences":        func(n int) string { return "<pre>" + strings.Repeat("```\n", n/4) },
	"links-nl":      func(n int) string { return "<a href=x>" + strings.Repeat("y<p>", n/4) },
	"h1-nl":         func(n int) string { return "<h1>" + strings.Repeat("y<br>", n/5) },
	"imgs":          func(n int) string { return strings.Repeat("<img src=x alt='a[b]'>", n/22) },
	"long-url":      func(n int) string { return "<a href='" + strings.Repeat("a b&", n/4) + "'>x</a>" },
	"spans-nested":  func(n int) string { return strings.Repeat("<span>", 400) + strings.Repeat("x<br>", n/5) },
	"adjacent":      func(n int) string { return strings.Repeat("<b>x</b> ", n/9) },
	"nested-tables": func(n int) string { return strings.Repeat("<table><tr><td>", 100) + strings.Repeat("x<br>", n/5) },
	"lists-deep":    func(n int) string { return strings.Repeat("<ul><li>x", 120) + strings.Repeat("<p>y", n/4) },
}

// Pages of a few KiB that took minutes, or made megabytes, before they were tamed.
func TestHostilePages(t *testing.T) {
	u, _ := url.Parse("https://example.com/")
	for name, make := range hostile {
		for _, format := range []FetchFormat{FormatText, FormatMarkdown} {
			t.Run(name+"/"+string(format), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				n := 16 << 10
				out, err := convert(ctx, make(n), u, format)
				if err != nil && (service.CodeOf(err) != CodeFetchFailed || !strings.Contains(err.Error(), "format 'raw'")) {
					t.Error(err)
				}
				if len(out) > 2*limits.WebNesting*n {
					t.Errorf("%d bytes became %d", n, len(out))
				}
			})
		}
	}
}

func TestTamed(t *testing.T) {
	deep := strings.Repeat("<ul><li>", 3*limits.WebNesting) + "end"
	if got := convertPage(t, deep, FormatMarkdown); !strings.HasSuffix(got, "end") || strings.Count(got, "- ") != limits.WebNesting/2 {
		t.Errorf("got %q", got)
	}
	for in, want := range map[string]string{
		"<table><tr><th>a|b<th>c<tr><td colspan=2>d<td>e": "| a\\|b | c |\n|---|---|\n| d | e |",
		"<ol start=7><li>x": "7. x", "<ol start=99999999999><li>x": "1. x", "<ol start=-5><li>x": "1. x",
		"<table><tr><td>a<table><tr><td>b": "a\n\n|  |\n|---|\n| b |",
	} {
		if got := convertPage(t, in, FormatMarkdown); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	wide := "<table><tr>" + strings.Repeat("<td>x", 1000) + strings.Repeat("<tr><td>y", 1000)
	if got := convertPage(t, wide, FormatMarkdown); strings.Contains(got, "|") || strings.Count(got, "y") != 1000 {
		t.Errorf("%d bytes: %.200q", len(got), got)
	}
}

func TestConvertIsInterrupted(t *testing.T) {
	u, _ := url.Parse("https://example.com/")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := convert(ctx, page, u, FormatMarkdown)
	wantCode(t, err, CodeAborted)
}

func TestLargePageIsNotConverted(t *testing.T) {
	u, _ := url.Parse("https://example.com/")
	_, err := convert(t.Context(), strings.Repeat("x", limits.WebConvert+1), u, FormatText)
	if msg := wantCode(t, err, CodeTooLarge); !strings.Contains(msg, "format 'raw'") {
		t.Error(msg)
	}
}

func FuzzConvert(f *testing.F) {
	f.Add(page)
	for _, make := range hostile {
		f.Add(make(600))
	}
	u, _ := url.Parse("https://example.com/a/b")
	f.Fuzz(func(t *testing.T, page string) {
		page = strings.ToValidUTF8(page, "") // as decode gives it
		for _, format := range []FetchFormat{FormatText, FormatMarkdown} {
			out, err := convert(t.Context(), page, u, format)
			if err != nil && service.CodeOf(err) != CodeFetchFailed {
				t.Fatal(err)
			}
			if strings.Contains(errText(err), "panic: ") && !strings.Contains(errText(err), "512") {
				t.Fatal(err)
			}
			if !utf8.ValidString(out) {
				t.Fatalf("%q is not UTF-8", out)
			}
			if len(out) > 100*len(page)+1000 {
				t.Fatalf("%d bytes became %d", len(page), len(out))
			}
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
