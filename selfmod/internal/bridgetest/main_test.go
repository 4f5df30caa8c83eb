package bridgetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// Described is a service that the catalog has, with one of its methods.
var Described = cordis.NewService[*Shapes]("shapes-described", cordis.PluginInterface(func(s *Shapes, c *cordis.Context) DescribedForPlugins {
	return &forPlugins{s, c}
}))

// DescribedForPlugins has one method that is described and one that is not.
type DescribedForPlugins interface {
	ForPlugins
}

func TestMain(m *testing.M) {
	// As the generator writes it.
	catalog.Services = append(catalog.Services, catalog.Service{Key: Described.Name(), Methods: []catalog.Method{{
		Name: "read", Go: "Read", Kind: catalog.KindAsync,
		Params:    []catalog.Param{{Name: "target", Type: "string | Place"}, {Name: "options", Type: "Options", Optional: true}},
		Result:    "string",
		Signature: "read(target: string | Place, options?: Options): Promise<string>",
	}}})
	slices.SortFunc(catalog.Services, func(a, b catalog.Service) int { return strings.Compare(a.Key, b.Key) })
	catalog.Types = append(catalog.Types, catalog.Type{Name: "Mode", Short: `type Mode = "fast" | "slow"`})
	slices.SortFunc(catalog.Types, func(a, b catalog.Type) int { return strings.Compare(a.Name, b.Name) })
	selfmodtest.Main(m)
}

// rig is a Rig with the services.
func rig(t testing.TB, cfg selfmod.Config) (*selfmodtest.Rig, *Shapes) {
	t.Helper()
	r := selfmodtest.New(t, cfg)
	s := New()
	provide(t, r, s)
	return r, s
}

// provide provides the services; the fiber stops them.
func provide(t testing.TB, r *selfmodtest.Rig, s *Shapes) *cordis.Fiber {
	t.Helper()
	f, err := r.Root.Mount(&cordis.Plugin{Name: "shapes", Apply: func(c *cordis.Context, _ any) error {
		if _, err := Service.Provide(c, s); err != nil {
			return err
		}
		if _, err := Described.Provide(c, s); err != nil {
			return err
		}
		_, err := Secret.Provide(c, s)
		return err
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(r.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// tool is a plugin with one tool whose body has s, the service, in scope; what it
// returns is shown as text, what is no text as JSON.
func withService(name, body string, before ...string) string {
	return fmt.Sprintf(`return {
  name: %[1]q, inject: ['tools', 'timer', 'shapes', 'shapes-described'],
  apply(ctx) {
    const s = ctx.shapes, d = ctx['shapes-described']
    const failed = (fn) => { try { const v = fn(); return v && v.then ? v.then((x) => 'no error: ' + x, text) : 'no error: ' + v } catch (e) { return text(e) } }
    const text = (e) => [e instanceof Error, e.name, e.code, e.message].join(' | ')
    %[3]s
    harness.registerTool(ctx, harness.defineTool({
      name: %[1]q, description: 'for a test', parameters: { x: { type: 'json' } },
      output: { schema: { type: 'json' }, render(_a, v) { return [{ type: 'text', text: typeof v === 'string' ? v : JSON.stringify(v) }] } },
      async execute(args, exec) { %[2]s },
    }))
  },
}`, name, body, strings.Join(before, "\n    "))
}

// eval mounts a tool that computes an expression, calls it and takes it out again.
func eval(r *selfmodtest.Rig, expression string) string {
	r.T.Helper()
	id := r.Mount(withService("eval", "return ("+expression+") ?? 'undefined'"))
	text := selfmodtest.Text(r.Call("eval", nil))
	r.Unmount(id)
	return text
}

// x is an argument of a tool.
func x(v any) string {
	text, err := json.Marshal(map[string]any{"x": v})
	if err != nil {
		panic(err)
	}
	return string(text)
}
