package compact

import (
	"context"
	_ "embed" // the texts
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

//go:embed summary.md
var summaryText string

//go:embed replacement.md
var replacementText string

//go:embed quote.md
var quoteText string

// codeUseless is the code of the failure of a summary that is of no use.
const codeUseless = "COMPACT_USELESS"

// A compactor compacts one conversation. It belongs to the goroutine that drives
// the agent, or has it in maintenance.
type compactor struct {
	s    *session.Session
	room room
	ask  func(context.Context, agent.OneShot) (*llm.Answer, error)
}

// id names a compaction, or its message, once in a log.
func (k *compactor) id() string { return fmt.Sprintf("%s-%d", Name, k.s.Len()) }

// summarise replaces the first n nodes of the surface by a summary. What is not
// worth it is ErrNothing; nothing is logged then. After any other error the log
// says why, and the surface is as it was.
func (k *compactor) summarise(ctx context.Context, reason string, n int, worth int64) (replaced int, err error) {
	nodes := k.s.Surface()
	nodes = nodes[:min(n, len(nodes))]
	before := nodesTokens(nodes)
	if len(nodes) == 0 || before < worth {
		return 0, ErrNothing
	}
	id := k.id()
	if _, err := k.s.Append(session.CompactStart{ID: id, Reason: reason}); err != nil {
		return 0, fmt.Errorf("compact session: %w", err)
	}
	text, err := k.write(ctx, nodes)
	if err == nil {
		m := replacement(k.id(), text, nodes)
		if tokensOf(m)*4 > before*3 {
			err = llm.Fail(codeUseless, "the summary is hardly shorter than what it is of: about %d tokens instead of %d", tokensOf(m), before)
		} else {
			_, err = k.s.Append(session.UserMessage{
				Message: m, Op: session.Op{Kind: session.Replace, Start: nodes[0].Seq, End: nodes[len(nodes)-1].Seq}, Sources: seqs(nodes),
			}, session.CompactEnd{ID: id, Outcome: "done", Replaced: len(nodes)})
		}
	}
	if err == nil {
		return len(nodes), nil
	}
	end := session.CompactEnd{ID: id, Outcome: "failed", Failure: llm.AsFailure(err, llm.CodeInternal)}
	if ctx.Err() != nil {
		end.Outcome = "canceled"
	}
	_, logged := k.s.Append(end)
	return 0, errors.Join(fmt.Errorf("compact session: %w", err), logged)
}

// write has the model summarise nodes. A history that is too large for it is cut
// to half, limits.CompactTries times.
func (k *compactor) write(ctx context.Context, nodes []session.Node) (string, error) {
	answer := int64(limits.CompactSummary)
	given := int64(limits.CompactTranscript)
	if w := k.room.window; w > 0 {
		answer = min(answer, w/4)
		given = min(given, w-answer-w/10)
	}
	for try := 1; ; try++ {
		text, err := k.request(ctx, transcript(nodes, given), int(answer))
		if err == nil {
			return text, nil
		}
		if f := llm.AsFailure(err, llm.CodeInternal); f.Code != llm.CodeContextWindow || try == limits.CompactTries {
			return "", err
		}
		given = min(given, nodesTokens(nodes)) / 2
	}
}

func (k *compactor) request(ctx context.Context, history string, answer int) (string, error) {
	a, err := k.ask(ctx, agent.OneShot{
		Purpose: llm.PurposeCompact, Owner: Name, MaxTokens: answer,
		System: strings.ReplaceAll(summaryText, "{{words}}", fmt.Sprint(answer/4)),
		Messages: []message.Message{
			message.FromPlugin(Name, Name, message.Plain("<history>\n"+history+"\n</history>\n\nWrite the summary now.")),
		},
	})
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(llm.JoinText(a.Content))
	if text == "" {
		return "", llm.Fail(codeUseless, "the model answered without a text")
	}
	return plain.Cut(text, limits.CompactSummaryText), nil
}

// replacement is the message that stands for nodes.
func replacement(id, summary string, nodes []session.Node) message.Message {
	text := strings.NewReplacer("{{count}}", fmt.Sprint(len(nodes)), "{{summary}}", summary).Replace(replacementText)
	if last := lastWords(nodes); last != "" {
		most := min(limits.CompactQuote, nodesTokens(nodes)/3) // of little text, little is quoted
		text += "\n" + strings.ReplaceAll(quoteText, "{{message}}", shorten(last, int(most)))
	}
	return message.FromPlugin(id, Name, message.Plain(strings.TrimSpace(text)))
}

// lastWords is the last message of the person among nodes.
func lastWords(nodes []session.Node) string {
	for i := len(nodes) - 1; i >= 0; i-- {
		if m := nodes[i].Message; nodes[i].Type == session.TypeUser && m.Source.Kind == message.SourceUser {
			return m.Text()
		}
	}
	return ""
}
