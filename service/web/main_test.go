package web

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a runtime with the service.
type world struct {
	root  *cordis.Context
	web   Web
	hub   *hub
	local *local
}

func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	root := cordis.New()
	f, err := root.Mount(Plugin(cfg), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := f.Dispose(ctx); err != nil {
			t.Error(err)
		}
	})
	w, _ := Service.Get(root)
	h := w.(*hub)
	return &world{root, w, h, h.fetches.entries[providerKey{nil, Local}][0].provider.(*local)}
}

// mount runs body as the apply function of a temporary plugin and gives its fiber.
func (w *world) mount(t *testing.T, id string, body func(p ForPlugins, c *cordis.Context) error) *cordis.Fiber {
	t.Helper()
	decl, _ := cordis.LookupService("web")
	f, err := tool.WithMount(w.root, tool.Mount{Number: 1, ID: id, Plugin: id}).Mount(&cordis.Plugin{
		Name: id, Inject: cordis.Require("web"),
		Apply: func(c *cordis.Context, _ any) error { return body(decl.Bind(w.web, c).(ForPlugins), c) },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// wantCode fails unless err has the code; it gives the message.
func wantCode(t *testing.T, err error, code string) string {
	t.Helper()
	if service.CodeOf(err) != code {
		t.Fatalf("got error %v (%q), want code %s", err, service.CodeOf(err), code)
	}
	return err.Error()
}

func port(t *testing.T, serverURL string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(serverURL[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var discard = log.New(io.Discard, "", 0)
