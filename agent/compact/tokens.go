package compact

import (
	"unicode/utf8"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// Rough sizes, in tokens, of what is no text.
const (
	imageTokens   = 1600
	messageTokens = 8 // around the content of a message
)

// textTokens estimates the tokens of a text: a quarter of its ASCII characters,
// and one for each other character. Too much is better here than too little.
func textTokens(s string) int64 {
	ascii := 0
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			ascii++
		}
	}
	if ascii == len(s) {
		return int64(ascii+3) / 4
	}
	return int64(ascii+3)/4 + int64(utf8.RuneCountInString(s)-ascii)
}

func blockTokens(blocks []message.Block) int64 {
	var n int64
	for _, b := range blocks {
		n += textTokens(string(b.Text)) + textTokens(string(b.Signature)) + textTokens(string(b.Redacted)) +
			textTokens(b.Name) + textTokens(string(b.Arguments)) + blockTokens(b.Content)
		if b.Type == message.ImageBlock {
			n += imageTokens
		}
	}
	return n
}

func tokensOf(m message.Message) int64 { return messageTokens + blockTokens(m.Content) }

func nodesTokens(nodes []session.Node) int64 {
	var n int64
	for _, node := range nodes {
		n += tokensOf(node.Message)
	}
	return n
}

// estimate is what the next request takes, by its text alone.
func estimate(l *session.Log) int64 {
	n := nodesTokens(l.Surface())
	h, ok := l.Header()
	if !ok {
		return n
	}
	n += textTokens(string(h.System))
	for _, t := range h.Tools {
		n += textTokens(t.Name) + textTokens(t.Description) + textTokens(t.Parameters.String()) + messageTokens
	}
	return n
}

// A meter knows how much of the window the next request takes: what the provider
// counted for the last one and its answer, and an estimate of what came after.
// It reads each event of the log once.
type meter struct {
	next    int64 // the seq of the first event that was not looked at
	counted bool  // the two below hold; a replace ends that until the next answer
	known   int64
	since   int64
	scale   float64 // of an estimate to what the provider counts; 0 is 1
}

func (m *meter) tokens(l *session.Log) int64 {
	m.read(l.Events(m.next))
	if m.counted {
		return m.known + m.since
	}
	if m.scale == 0 {
		return estimate(l)
	}
	return int64(float64(estimate(l)) * m.scale)
}

// calibrate learns, before a replace, how good an estimate is.
func (m *meter) calibrate(l *session.Log) {
	if now := m.tokens(l); m.counted {
		m.scale = min(max(float64(now)/float64(max(estimate(l), 1)), 0.25), 4)
	}
}

// read takes events in. The last answer with a usage, or the last replace behind
// it, makes everything before it unimportant.
func (m *meter) read(events []session.Event) {
	from := 0
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		if e.Op().Kind == session.Replace {
			m.counted, from = false, len(events)
			break
		}
		if e.Type != session.TypeAssistant {
			continue
		}
		if u := usageOf(e); u.Prompt() > 0 {
			m.counted, m.known, m.since, from = true, u.Total(), 0, i+1
			break
		}
	}
	if m.counted {
		for _, e := range events[from:] {
			m.since += eventTokens(e)
		}
	}
	m.next += int64(len(events))
}

func usageOf(e session.Event) message.Usage {
	p, err := e.Payload()
	if a, ok := p.(session.AssistantMessage); ok && err == nil && a.Usage != nil {
		return *a.Usage
	}
	return message.Usage{}
}

// eventTokens estimates what an event adds to the surface.
func eventTokens(e session.Event) int64 {
	if e.Op().Kind == "" {
		return 0
	}
	p, err := e.Payload()
	if err != nil {
		return 0
	}
	switch p := p.(type) {
	case session.UserMessage:
		return tokensOf(p.Message)
	case session.AssistantMessage:
		return tokensOf(p.Message)
	case session.Result:
		return tokensOf(p.Message)
	}
	return 0
}

// room is what a model's context window leaves for a request.
type room struct {
	window int64 // 0: not known
	full   int64 // from so many tokens on it counts as full
}

// roomIn leaves a tenth of the window for the answer, or what the answer may have,
// but never more than half.
func roomIn(window, answer int64) room {
	if window <= 0 {
		return room{}
	}
	return room{window, window - min(max(window/10, answer), window/2)}
}
