package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

//go:embed search.md
var searchText string

// searchArgs are the arguments of web_search.
type searchArgs struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
	Provider   string `json:"provider"`
}

// found is the canonical value of web_search.
type found struct {
	Answer    string   `json:"answer"`
	Results   []result `json:"results"`
	Truncated bool     `json:"truncated"`
}

type result struct {
	URL       string `json:"url"`
	Title     string `json:"title"`
	Snippet   string `json:"snippet"`
	Published string `json:"published"`
}

func searchTool(w web.Web) *tool.Definition {
	return &tool.Definition{
		Name: "web_search", Title: "Search the web", Description: strings.TrimSpace(searchText), Kind: tool.KindFetch,
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("query", schema.String("The words to search for."), schema.Required),
			schema.Prop("max_results", schema.Integer(fmt.Sprintf("The most results, 1 to %d.", limits.WebSources)), schema.Default(lossless.Int(limits.WebSourcesIf))),
			schema.Prop("provider", schema.String("The id of the search provider, needed only where there are several.")),
		)))),
		Output: tool.Output{Render: renderSearch, Schema: schema.Must(schema.Output(schema.Object(
			schema.Prop("answer", schema.String("An answer in words, or empty."), schema.Required),
			schema.Prop("results", schema.Array("The pages, the best first.", schema.Object(
				schema.Prop("url", schema.String(""), schema.Required),
				schema.Prop("title", schema.String(""), schema.Required),
				schema.Prop("snippet", schema.String(""), schema.Required),
				schema.Prop("published", schema.String(""), schema.Required),
			)), schema.Required),
			schema.Prop("truncated", schema.Boolean("Whether results or texts were left out."), schema.Required),
		)))},
		ConcurrencySafe: parallel,
		PresentCall: func(_ context.Context, args lossless.Text) (*tool.Card, error) {
			var a searchArgs
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, fmt.Errorf("read arguments: %w", err)
			}
			return &tool.Card{Generic: &tool.GenericCard{Title: "Search the web: " + plain.Line(a.Query, limits.SourceLine), Kind: tool.KindFetch}}, nil
		},
		PresentResult: presentSearch,
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			var a searchArgs
			if err := json.Unmarshal(exec.Arguments, &a); err != nil {
				return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
			}
			if a.MaxResults < 1 || a.MaxResults > limits.WebSources { // 0 would be the service's default
				return tool.Outcome{}, fmt.Errorf("max_results is %d; it must be from 1 to %d", a.MaxResults, limits.WebSources)
			}
			r, err := w.Search(ctx, web.SearchRequest{Query: a.Query, MaxResults: a.MaxResults, Provider: a.Provider})
			if err != nil {
				return tool.Outcome{}, err
			}
			v := found{Answer: r.Content, Results: []result{}, Truncated: r.Truncated}
			for _, s := range r.Sources {
				v.Results = append(v.Results, result{URL: s.URL, Title: s.Title, Snippet: s.Snippet, Published: s.PublishedAt})
			}
			return outcome(v)
		},
	}
}

func renderSearch(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var v found
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	var parts []string
	if answer := strings.TrimSpace(v.Answer); answer != "" {
		parts = append(parts, answer)
	}
	for i, r := range v.Results {
		text := fmt.Sprintf("%d. %s\n   %s", i+1, heading(r), plain.Line(r.URL, limits.WebURL))
		if r.Published != "" {
			text += "\n   " + plain.Line(r.Published, limits.Name)
		}
		if snippet := plain.Line(r.Snippet, limits.WebSnippet); snippet != "" {
			text += "\n   " + snippet
		}
		parts = append(parts, text)
	}
	if parts == nil {
		parts = append(parts, "No results.")
	}
	if v.Truncated {
		parts = append(parts, "[some results or texts were left out]")
	}
	return []tool.Block{tool.TextBlock(strings.Join(parts, "\n\n"))}, nil
}

func heading(r result) string {
	if title := plain.Line(r.Title, limits.WebTitle); title != "" {
		return title
	}
	return "(no title)"
}

func presentSearch(_ context.Context, args lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError {
		return nil, nil
	}
	var a searchArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	var v found
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	card := &tool.WebCard{Kind: tool.WebSearch, Query: a.Query}
	for _, r := range v.Results {
		card.Results = append(card.Results, tool.WebResult{Title: heading(r), URL: r.URL, Snippet: r.Snippet})
	}
	if v.Answer != "" {
		card.Content = []tool.Block{tool.TextBlock(v.Answer)}
	}
	return &tool.Card{Web: card}, nil
}
