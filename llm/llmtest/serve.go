package llmtest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Server is an HTTP server on loopback that plays answers.
type Server struct {
	URL string

	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
}

// Serve starts a server that hands every request to h, and ends it with the test.
func Serve(t testing.TB, h http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		s.mu.Lock()
		s.bodies, s.heads = append(s.bodies, b.Bytes()), append(s.heads, r.Header)
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	s.URL = ts.URL
	return s
}

// Bodies returns the bodies of the requests so far.
func (s *Server) Bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Header returns the header of the i-th request.
func (s *Server) Header(i int) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads[i]
}

// Play answers with the pieces, each sent before the next: a nil piece waits
// until the client has gone, an empty one cuts the connection.
func Play(contentType string, pieces ...[]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for _, p := range pieces {
			switch {
			case p == nil:
				<-r.Context().Done()
				return
			case len(p) == 0:
				panic(http.ErrAbortHandler)
			}
			if _, err := w.Write(p); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// Variants returns the ways in which the same stream may arrive, by name.
func Variants(sse []byte) map[string][][]byte {
	whole := func(b []byte) [][]byte { return [][]byte{b} }
	out := map[string][][]byte{
		"asItIs":     whole(sse),
		"bom":        whole(append([]byte("\ufeff"), sse...)),
		"noFinalGap": whole(bytes.TrimRight(sse, "\r\n")),
	}
	if !bytes.Contains(sse, []byte("\r\n")) {
		out["crlf"] = whole(bytes.ReplaceAll(sse, []byte("\n"), []byte("\r\n")))
		out["cr"] = whole(bytes.ReplaceAll(sse, []byte("\n"), []byte("\r")))
		out["noSpace"] = whole(bytes.ReplaceAll(sse, []byte("\ndata: "), []byte("\ndata:")))
		out["keepAlive"] = whole(bytes.ReplaceAll(sse, []byte("\n\n"), []byte("\n\n: keep-alive\n\ndata: : keep-alive\n\ndata:\n\n")))
	}
	return out
}
