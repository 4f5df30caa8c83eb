package sandbox_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// forgedService is what a worker that was taken over asks things of.
var forgedService = cordis.NewService[int]("forged-service", cordis.PluginInterface(func(int, *cordis.Context) forgedPlugins { return forgedMethods{} }))

type forgedPlugins interface {
	Add(a, b int) int
	Later(ctx context.Context, fn func()) (string, error)
	Open(ctx context.Context) (forgedObject, error)
	Count(ctx context.Context) iter.Seq2[int, error]
}

type forgedObject interface {
	Size() int
}

type forgedMethods struct{}

func (forgedMethods) Add(a, b int) int                              { return a + b }
func (forgedMethods) Later(context.Context, func()) (string, error) { return "later", nil }
func (forgedMethods) Open(context.Context) (forgedObject, error)    { return forgedMethods{}, nil }
func (forgedMethods) Size() int                                     { return 7 }
func (forgedMethods) Count(context.Context) iter.Seq2[int, error] {
	return func(func(int, error) bool) {}
}

// forgedServices are requests of a service that no prelude makes.
var forgedServices = []forgedVerb{
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"add","a":[1,2]}`, has: "=3"},
	{kind: wire.HostAsync, verb: "service", payload: `{"s":"forged-service","m":"add","a":[1,2]}`, has: "=3"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"later","a":[{"$":"f","h":9}]}`, has: "is not synchronous"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"count","a":[]}`, has: "is not synchronous"},
	{kind: wire.HostAsync, verb: "service", payload: `{"s":"forged-service","m":"later","a":[{"$":"f","h":4294967295}]}`, has: "=~later"},
	{kind: wire.HostAsync, verb: "service", payload: `{"s":"forged-service","m":"later","a":[{"$":"f","h":-1}]}`, has: "argument 1 (arg1) must be ()"},
	{kind: wire.HostAsync, verb: "service", payload: `{"s":"forged-service","m":"later","a":[{"$":"f"}]}`, has: "got a function"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"Add","a":[1,2]}`, has: `did you mean \"add\"?`},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"\u001b[31mFORGED` + strings.Repeat("m", 1<<17) + `","a":[]}`, has: "has no member"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"add","a":[1,` + deepSchema + `]}`, has: "!"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"add","a":[1,"` + strings.Repeat("x", 1<<17) + `"]}`, has: "must be number, got the string"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"add","a":{"0":1}}`, has: "it has no arguments"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","m":"add"}`, has: "it has no arguments"},
	{kind: wire.HostSync, verb: "service", payload: ``, has: "!"},
	{kind: wire.HostSync, verb: "service", payload: `[]`, has: "it has no arguments"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"forged-service","s":"tools","m":"add","a":[]}`, has: "!"},
	{kind: wire.HostSync, verb: "service", payload: `{"s":"tools","m":"register","a":[]}`, has: "is not injected"},
	{kind: wire.HostSync, verb: "service", payload: `{"h":1,"m":"size","a":[]}`, run: 9, has: "can no longer be used"},
	{kind: wire.HostSync, verb: "service", payload: `{"h":1000,"m":"size","a":[]}`, has: "this object of a service is gone"},
	{kind: wire.HostSync, verb: "service", payload: `{"h":-1,"m":"size","a":[]}`, has: "this object of a service is gone"},
	{kind: wire.HostSync, verb: "service", payload: `{"h":1e99,"m":"size","a":[]}`, has: "this object of a service is gone"},
	{kind: wire.HostSync, verb: "service", payload: `{"h":"1","m":"size","a":[]}`, has: "this object of a service is gone"},
	{kind: wire.HostSync, verb: "service", payload: `{"h":4294967297,"m":"size","a":[]}`, has: "this object of a service is gone"},
	{kind: wire.HostSync, verb: "service", payload: `{"m":"size","a":[]}`, has: "this object of a service is gone"},
	{kind: wire.HostAsync, verb: "pull", payload: `{"h":77}`, has: `={"v":[],"d":true}`},
	{kind: wire.HostAsync, verb: "pull", payload: `{"h":-1}`, has: "!"},
	{kind: wire.HostAsync, verb: "stop", payload: `{"h":77}`, has: "="},
	{kind: wire.HostAsync, verb: "stop", payload: `x`, has: "!"},
	{kind: wire.Send, verb: "cancel", payload: `{"t":-1}`},
	{kind: wire.Send, verb: "cancel", payload: `{"t":18446744073709551615}`},
	{kind: wire.Send, verb: "drop", payload: `{"h":[1,2,3,-1]}`},
	{kind: wire.Send, verb: "drop", payload: deepSchema},
}

// TestForgedServices: a worker that was taken over can call the services that its
// mount declares as a plugin can, and nothing else.
func TestForgedServices(t *testing.T) {
	t.Parallel()
	r := forgedRig(t, "services")
	f, err := r.Root.Mount(&cordis.Plugin{Name: "provider", Apply: func(c *cordis.Context, _ any) error {
		_, err := forgedService.Provide(c, 1)
		return err
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(r.Context()); err != nil {
		t.Fatal(err)
	}
	id := r.Mount("whatever")
	res := r.Call("dump", nil)
	r.Works(res, "told")
	var got map[string]string
	if err := json.Unmarshal(res.Value, &got); err != nil {
		t.Fatal(err)
	}
	checkForged(t, forgedServices, got)
	r.Unmount(id)
}
