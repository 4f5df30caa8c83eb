package compact

import (
	_ "embed" // the text of the mark
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

//go:embed pruned.md
var prunedText string

// prune cuts big results of tools before the latest step, the oldest first, until
// as many tokens as asked are free or nothing is left to cut. It returns how many
// results it cut, and the tokens that are free now.
func (k *compactor) prune(want int64) (pruned int, freed int64, err error) {
	nodes := k.s.Surface()
	big := bigResults(nodes)
	if len(big) == 0 || want <= 0 {
		return 0, 0, nil
	}
	id := k.id()
	events := k.s.Events(nodes[0].Seq) // inserts may stand before what is older
	first := nodes[0].Seq
	batch := []session.Payload{session.CompactStart{ID: id, Reason: "prune"}}
	for _, i := range big {
		if freed >= want || len(batch) > limits.CompactPruned {
			break
		}
		n := nodes[i]
		if n.Seq < first {
			events, first = k.s.Events(n.Seq), n.Seq
		}
		p, err := events[n.Seq-first].Payload()
		r, ok := p.(session.Result)
		if err != nil || !ok {
			return 0, 0, fmt.Errorf("prune result %d: it cannot be read: %w", n.Seq, err)
		}
		r.Op, r.Sources = session.Op{Kind: session.Replace, Start: n.Seq, End: n.Seq}, []int64{n.Seq}
		r.Message = cutResult(r.Message, toolOf(nodes[:i], n.Message.Content[0].CallID))
		freed += tokensOf(n.Message) - tokensOf(r.Message)
		batch = append(batch, r)
	}
	pruned = len(batch) - 1
	batch = append(batch, session.CompactEnd{ID: id, Outcome: "done", Replaced: pruned})
	if _, err := k.s.Append(batch...); err != nil {
		return 0, 0, fmt.Errorf("prune results: %w", err)
	}
	return pruned, freed, nil
}

// bigResults are the positions of results that can be cut, the oldest first: those
// before the latest step.
func bigResults(nodes []session.Node) []int {
	var big []int
	for i, n := range nodes[:latest(nodes, len(nodes))] {
		if n.Type == session.TypeResult && utf8.RuneCountInString(message.JoinText(n.Message.Content[0].Content)) > limits.CompactResult {
			big = append(big, i)
		}
	}
	return big
}

// cutResult returns a result's message with its text cut; images stay.
func cutResult(m message.Message, tool string) message.Message {
	if tool != "" {
		tool = plain.Name(tool)
	} else {
		tool = "the tool"
	}
	m = m.Clone()
	block := &m.Content[0]
	content := []message.Block{message.Plain(middleCut(message.JoinText(block.Content), limits.CompactHead, limits.CompactTail, func(cut, all int) string {
		return "\n\n" + strings.NewReplacer("{{cut}}", fmt.Sprint(cut), "{{all}}", fmt.Sprint(all), "{{tool}}", tool).Replace(strings.TrimSpace(prunedText)) + "\n\n"
	}))}
	for _, b := range block.Content {
		if b.Type != message.TextBlock {
			content = append(content, b)
		}
	}
	block.Content = content
	return m
}

// middleCut returns the first head and the last tail characters of a text with a
// mark between them, or the whole text if it has no more.
func middleCut(s string, head, tail int, mark func(cut, all int) string) string {
	all := utf8.RuneCountInString(s)
	if all <= head+tail {
		return s
	}
	from, to := runes(s, head), len(s)
	for range tail {
		_, size := utf8.DecodeLastRuneInString(s[:to])
		to -= size
	}
	return s[:from] + mark(all-head-tail, all) + s[to:]
}

// runes returns where in s its first n characters end.
func runes(s string, n int) int {
	for at := range s {
		if n == 0 {
			return at
		}
		n--
	}
	return len(s)
}
