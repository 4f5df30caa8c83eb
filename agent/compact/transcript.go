package compact

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// transcript writes nodes down for the model that is to summarise them, in at most
// so many tokens: long texts are cut, ever shorter; then messages from the middle
// are left out. The beginning, which has the task, and the end stay.
func transcript(nodes []session.Node, tokens int64) string {
	var entries []string
	for piece := limits.CompactPiece; ; piece /= 2 {
		entries = entries[:0]
		var all int64
		for i, n := range nodes {
			e := entry(nodes[:i], n, piece)
			entries = append(entries, e)
			all += textTokens(e)
		}
		if all <= tokens {
			return strings.Join(entries, "\n\n")
		}
		if piece < 2*limits.CompactPieceMin {
			return strings.Join(middleOut(entries, tokens), "\n\n")
		}
	}
}

// middleOut keeps a quarter of the tokens at the beginning and the rest at the end.
func middleOut(entries []string, tokens int64) []string {
	from, to := 0, len(entries)
	left := tokens / 4
	for from < to && textTokens(entries[from]) <= left {
		left -= textTokens(entries[from])
		from++
	}
	left += tokens - tokens/4
	for to > from && textTokens(entries[to-1]) <= left {
		left -= textTokens(entries[to-1])
		to--
	}
	kept := append([]string{}, entries[:from]...)
	if to > from {
		kept = append(kept, fmt.Sprintf("[%d messages are left out here]", to-from))
	}
	return append(kept, entries[to:]...)
}

// entry writes down one message; before are the nodes ahead of it.
func entry(before []session.Node, n session.Node, piece int) string {
	m := n.Message
	if isSummary(m) { // whole: nothing else has what it says
		return "[summary of what came before]\n" + m.Text()
	}
	if n.Type == session.TypeResult {
		block := m.Content[0]
		head := "[result of " + plain.Name(toolOf(before, block.CallID))
		if block.IsError {
			head += ", an error"
		}
		return head + "]\n" + said(block.Content, piece)
	}
	head := "[the person]"
	switch {
	case m.Role == message.Assistant:
		head = "[the agent]"
	case m.Source.Kind == message.SourcePlugin:
		head = "[message of plugin " + plain.Name(m.Source.Name) + "]"
	case m.Source.Kind != message.SourceUser:
		head = "[message of " + plain.Name(m.Source.Kind) + "]"
	}
	return head + "\n" + said(m.Content, piece)
}

// said writes down blocks, without the model's thinking.
func said(blocks []message.Block, piece int) string {
	var parts []string
	for _, b := range blocks {
		switch b.Type {
		case message.TextBlock:
			parts = append(parts, shorten(string(b.Text), piece))
		case message.CallBlock:
			parts = append(parts, fmt.Sprintf("[calls %s with %s]", plain.Name(b.Name), shorten(string(b.Arguments), piece)))
		case message.ImageBlock:
			parts = append(parts, fmt.Sprintf("[an image %s]", plain.Name(b.Attachment.Name)))
		}
	}
	return strings.Join(parts, "\n")
}

// shorten cuts the middle out of a text of more than n characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return middleCut(s, n*3/4, n/4, func(cut, _ int) string { return fmt.Sprintf("\n[%d characters cut]\n", cut) })
}
