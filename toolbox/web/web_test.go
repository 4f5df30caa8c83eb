package web

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// rig is a runtime with the tools in a scope.
type rig struct {
	t     *testing.T
	root  *cordis.Context
	scope *tool.Scope
	tools *tool.Registry
	web   web.Web
	fiber *cordis.Fiber // of the plugin
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, root: cordis.New(), scope: tool.NewScope("s", nil)}
	r.mount(r.root, tool.Plugin())
	r.mount(r.root, web.Plugin(web.Config{AllowPrivate: true}))
	r.fiber = r.mount(tool.WithScope(r.root, r.scope), Plugin())
	r.tools, _ = tool.Service.Get(r.root)
	r.web, _ = web.Service.Get(r.root)
	t.Cleanup(func() {
		if _, err := r.root.Fiber().Dispose(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) mount(c *cordis.Context, p *cordis.Plugin) *cordis.Fiber {
	r.t.Helper()
	f, err := c.Mount(p, nil)
	if err == nil {
		err = f.Await(r.t.Context())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

func (r *rig) call(name, args string) *tool.Result {
	return r.tools.Execute(r.t.Context(), tool.Call{Name: name, Scope: r.scope, Arguments: lossless.Text(args)})
}

func (r *rig) has(name string) bool {
	_, ok := r.tools.Get(name, r.scope)
	return ok
}

func text(r *tool.Result) string {
	var all []string
	for _, b := range r.Content {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// serve serves pages by path, and gives the server's URL.
func serve(t *testing.T, pages map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if strings.HasPrefix(page, "<") {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		} else {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestDefinitions(t *testing.T) {
	for _, d := range []*tool.Definition{fetchTool(nil), searchTool(nil)} {
		golden(t, d.Name, fmt.Sprintf("%s\n%s\n%s\n", d.Name, d.Description, d.Parameters.JSON()))
	}
}

func TestFetchTexts(t *testing.T) {
	lines := strings.Repeat("é 8 signs\n", 300) // 10 characters each
	url := serve(t, map[string]string{
		"/page":  "<html><head><title>T</title></head><body><h1>Heading</h1><p>Some <b>text</b>.</p><script>x</script></body></html>",
		"/lines": lines, "/empty": "", "/long": strings.Repeat("x", limits.WebContent+1),
	})
	r := newRig(t)
	for name, c := range map[string]struct{ args, want string }{
		"markdown":     {`{"url":"U/page"}`, "U/page (status 200, text/html)\n\n# Heading\n\nSome **text**."},
		"text":         {`{"url":"U/page","format":"text"}`, "U/page (status 200, text/html)\n\nHeading\n\nSome text."},
		"not-found":    {`{"url":"U/none"}`, "U/none (status 404, text/plain)\n\n(no content)"},
		"empty":        {`{"url":"U/empty"}`, "U/empty (status 200, text/plain)\n\n(no content)"},
		"first-window": {`{"url":"U/lines","max_chars":505}`, "U/lines (status 200, text/plain)\n\n" + strings.TrimSuffix(lines[:50*11], "\n") + "\n\n[characters 0 to 500 of 3000; to go on, fetch the same url with offset 500]"},
		"last-window":  {`{"url":"U/lines","offset":2990}`, "U/lines (status 200, text/plain)\n\né 8 signs\n\n[characters 2990 to 3000: this is the end of the page]"},
		"cut": {`{"url":"U/long","offset":99990}`, "U/long (status 200, text/plain)\n\nxxxxxxxxxx\n\n[characters 99990 to 100000; the page goes on, but this tool reads only its first 100000 characters: " +
			"look for a more specific page, or download it with a command]"},
		"behind-the-end": {`{"url":"U/lines","offset":3000}`, "Error: offset 3000 is behind the end: U/lines has 3000 characters now"},
		"bad-offset":     {`{"url":"U/lines","offset":-1}`, "Error: offset is -1; it counts characters from 0"},
		"small-window":   {`{"url":"U/lines","max_chars":10}`, "Error: max_chars is 10; it must be from 500 to 100000"},
		"large-window":   {`{"url":"U/lines","max_chars":100001}`, "Error: max_chars is 100001; it must be from 500 to 100000"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(text(r.call("web_fetch", strings.ReplaceAll(c.args, "U", url))), url, "U")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	got := text(r.call("web_fetch", `{"url":"`+url+`/long"}`))
	if !strings.HasSuffix(got, "[characters 0 to 20000 of more than 100000; to go on, fetch the same url with offset 20000]") {
		t.Errorf("…%s", got[len(got)-200:])
	}
	if got := text(r.call("web_fetch", `{"url":"ftp://x"}`)); !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, "http") {
		t.Error(got)
	}
}

func TestFetchReadsAllByWindows(t *testing.T) {
	page := strings.Repeat("a line of äöü\n", 500)
	url := serve(t, map[string]string{"/": page})
	r := newRig(t)
	var all strings.Builder
	for offset, n := 0, 0; ; n++ {
		res := r.call("web_fetch", fmt.Sprintf(`{"url":%q,"offset":%d,"max_chars":1000}`, url+"/", offset))
		if res.IsError || n > 20 {
			t.Fatal(text(res))
		}
		v, err := lossless.Parse(res.Value)
		if err != nil {
			t.Fatal(err)
		}
		content, _ := v.Get("content")
		all.WriteString(content.Str())
		next, more := v.Get("next_offset")
		if !more {
			break
		}
		to, _ := next.Int64()
		offset = int(to)
	}
	if all.String() != page {
		t.Errorf("%d of %d bytes were read", all.Len(), len(page))
	}
}

func TestWindowProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[aé€\n]{0,60}`).Draw(t, "s")
		most := rapid.IntRange(1, 30).Draw(t, "most")
		var all strings.Builder
		for offset := 0; offset < utf8.RuneCountInString(s); {
			w := window(s, offset, most)
			n := utf8.RuneCountInString(w)
			if n == 0 || n > most {
				t.Fatalf("a window of %d characters at %d", n, offset)
			}
			offset += n
			all.WriteString(w)
		}
		if all.String() != s {
			t.Fatalf("read %q of %q", all.String(), s)
		}
	})
}

func TestDenied(t *testing.T) {
	r := newRig(t)
	if _, err := web.FetchIntent.On(r.root, func(context.Context, web.PendingFetch, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		return tool.Deny("not here"), nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := text(r.call("web_fetch", `{"url":"http://127.0.0.1:1/"}`)); got != "Error: not here" {
		t.Error(got)
	}
}

// finder is a search provider.
type finder struct {
	id     string
	result web.SearchResult
	err    error
}

func (f *finder) ID() string      { return f.id }
func (f *finder) Available() bool { return true }
func (f *finder) Search(context.Context, web.SearchRequest) (web.SearchResult, error) {
	return f.result, f.err
}

func (r *rig) provide(c *cordis.Context, f *finder) *cordis.Handle {
	r.t.Helper()
	h, err := r.web.RegisterSearchProvider(c, f)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *rig) dispose(h *cordis.Handle) {
	r.t.Helper()
	if err := h.Dispose(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func TestSearchTexts(t *testing.T) {
	for name, c := range map[string]struct {
		finder finder
		args   string
		want   string
	}{
		"results": {finder{result: web.SearchResult{Sources: []web.SearchSource{
			{URL: "https://a.example/", Title: "A\nx", Snippet: "about  a", PublishedAt: "2026-01-02"}, {URL: "https://b.example/"}}}}, `{"query":"q"}`,
			"1. A x\n   https://a.example/\n   2026-01-02\n   about a\n\n2. (no title)\n   https://b.example/"},
		"answer":       {finder{result: web.SearchResult{Content: "It is 42.\n", Sources: []web.SearchSource{{URL: "https://a.example/", Title: "A"}}}}, `{"query":"q"}`, "It is 42.\n\n1. A\n   https://a.example/"},
		"nothing":      {finder{}, `{"query":"q"}`, "No results."},
		"truncated":    {finder{result: web.SearchResult{Sources: []web.SearchSource{{URL: "u1", Title: "1"}, {URL: "u2"}}}}, `{"query":"q","max_results":1}`, "1. 1\n   u1\n\n[some results or texts were left out]"},
		"failed":       {finder{err: errors.New("boom")}, `{"query":"q"}`, `Error: the search provider "f" failed: boom`},
		"too-many":     {finder{}, `{"query":"q","max_results":51}`, "Error: max_results is 51; it must be from 1 to 50"},
		"none-wanted":  {finder{}, `{"query":"q","max_results":0}`, "Error: max_results is 0; it must be from 1 to 50"},
		"not-provided": {finder{}, `{"query":"q","provider":"x"}`, `Error: the request names the search provider "x", which is not registered; registered: f`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c.finder.id = "f"
			r.provide(r.root, &c.finder)
			if diff := cmp.Diff(c.want, text(r.call("web_search", c.args))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSearchIsThereWhileItCanWork(t *testing.T) {
	r := newRig(t)
	steps := func(what string, want bool) {
		t.Helper()
		if r.has("web_search") != want {
			t.Errorf("%s: web_search is there: %t", what, !want)
		}
	}
	steps("at the start", false)
	other := r.provide(tool.WithScope(r.root, tool.NewScope("other", nil)), &finder{id: "a"})
	steps("a provider of another scope", false)
	global := r.provide(r.root, &finder{id: "b"})
	steps("a global provider", true)
	own := r.provide(tool.WithScope(r.root, r.scope), &finder{id: "c"})
	r.dispose(global)
	steps("one of two left", true)
	r.dispose(other)
	r.dispose(own)
	steps("none left", false)
	r.provide(r.root, &finder{id: "d"})
	steps("again", true)
	if err := r.fiber.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.fiber.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	steps("after a restart", true)
	if _, err := r.fiber.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	steps("without the plugin", false)
}

// TestProvidersComeAndGoAtOnce: whoever is last, the tool fits the providers.
func TestProvidersComeAndGoAtOnce(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				h, err := r.web.RegisterSearchProvider(r.root, &finder{id: fmt.Sprintf("p%d", i)})
				if err == nil {
					err = h.Dispose(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if r.has("web_search") {
		t.Error("web_search is left")
	}
	r.provide(r.root, &finder{id: "last"})
	if !r.has("web_search") {
		t.Error("web_search is not there")
	}
}

func TestCards(t *testing.T) {
	url := serve(t, map[string]string{"/page": "<h1>Heading</h1><p>Text.</p>"})
	r := newRig(t)
	r.provide(r.root, &finder{id: "f", result: web.SearchResult{Content: "42", Sources: []web.SearchSource{{URL: "https://a.example/", Title: "A", Snippet: "s"}}}})
	for name, c := range map[string]struct{ tool, args, call, result string }{
		"fetch": {"web_fetch", `{"url":"U/page"}`, `{"type":"generic","title":"Fetch U/page","kind":"fetch"}`,
			`{"type":"web","kind":"fetch","url":"U/page","status":200,"title":"Heading","content":[{"type":"text","text":"# Heading\n\nText."}]}`},
		"search": {"web_search", `{"query":"a b"}`, `{"type":"generic","title":"Search the web: a b","kind":"fetch"}`,
			`{"type":"web","kind":"search","query":"a b","results":[{"title":"A","url":"https://a.example/","snippet":"s"}],"content":[{"type":"text","text":"42"}]}`},
		"refused": {"web_fetch", `{"url":"x"}`, `{"type":"generic","title":"Fetch x","kind":"fetch"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.ReplaceAll(c.args, "U", url)
			res := r.call(c.tool, args)
			show := func(card *tool.Card) string {
				out, err := card.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(string(out), url, "U")
			}
			if diff := cmp.Diff(c.call, show(r.tools.PresentCall(t.Context(), c.tool, r.scope, lossless.Text(args)))); diff != "" {
				t.Error(diff)
			}
			if got := show(r.tools.PresentResult(t.Context(), c.tool, r.scope, lossless.Text(args), res)); c.result != "" && got != c.result {
				t.Error(cmp.Diff(c.result, got))
			}
		})
	}
}
