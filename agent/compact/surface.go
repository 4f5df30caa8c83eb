package compact

import (
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// latest returns the position of the last answer before end: where the latest step
// begins. Without one it is end.
func latest(nodes []session.Node, end int) int {
	for i := end - 1; i >= 0; i-- {
		if nodes[i].Type == session.TypeAssistant {
			return i
		}
	}
	return end
}

// position returns where on the surface the messages of the open step begin, which
// has no answer yet and was started behind the event at from.
func position(nodes []session.Node, from int64) int {
	i := len(nodes)
	for i > 0 && nodes[i-1].Seq >= from && nodes[i-1].Type == session.TypeUser && !isSummary(nodes[i-1].Message) {
		i--
	}
	return i
}

// cut returns how many nodes from the front are to be replaced: as many as have to
// be, so that the others before end have at most keep tokens, or, as far as they
// are the latest step, at most step tokens. It never comes between an answer and
// its results. 0: there is nothing to replace.
func cut(nodes []session.Node, end int, keep, step int64) int {
	last := latest(nodes, end)
	at, size := end, int64(0)
	for i := end - 1; i >= 0; i-- {
		size += tokensOf(nodes[i].Message)
		if i >= last && size > step || i < last && size > keep {
			break
		}
		if nodes[i].Type != session.TypeResult {
			at = i
		}
	}
	if at == 1 && isSummary(nodes[0].Message) {
		return 0
	}
	return at
}

// isSummary says whether a message is one that this package put in the place of
// others.
func isSummary(m message.Message) bool {
	return m.Role == message.User && m.Source.IsPlugin(Name)
}

// seqs are the sequence numbers of nodes.
func seqs(nodes []session.Node) []int64 {
	list := make([]int64, len(nodes))
	for i, n := range nodes {
		list[i] = n.Seq
	}
	return list
}

// toolOf returns the name of the tool that a call of the surface names.
func toolOf(nodes []session.Node, callID string) string {
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, b := range nodes[i].Message.Calls() {
			if b.ID == callID {
				return b.Name
			}
		}
	}
	return ""
}
