package bridge_test

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/bridge"
	"github.com/dsh-go/dsh/selfmod/catalog"

	// Everything that plugins may inject.
	_ "github.com/dsh-go/dsh/service/bash"
	_ "github.com/dsh-go/dsh/service/fs"
	_ "github.com/dsh-go/dsh/service/kv"
	_ "github.com/dsh-go/dsh/service/log"
	_ "github.com/dsh-go/dsh/service/timer"
	_ "github.com/dsh-go/dsh/service/web"
	_ "github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the catalog says of a service, and of the objects that it gives, is what
// can be called of it, and the other way round.
func TestCatalogAgrees(t *testing.T) {
	called := 0
	for _, d := range cordis.Services() {
		if !d.Injectable() || strings.HasPrefix(d.Name, "test-") {
			continue
		}
		described, ok := catalog.LookupService(d.Name)
		if !ok {
			t.Errorf("service %q can be injected and is not in the catalog; run go generate ./...", d.Name)
			continue
		}
		if described.Facade != (d.Bind == nil) {
			t.Errorf("service %q: the catalog says façade %v, and bind is nil: %v", d.Name, described.Facade, d.Bind == nil)
		}
		if described.Facade {
			continue
		}
		called++
		i, err := bridge.Of(d)
		if err != nil {
			t.Error(err)
			continue
		}
		if d.Plugin.NumMethod() != len(described.Methods) {
			t.Errorf("service %q has %d methods, the catalog %d; run go generate ./...", d.Name, d.Plugin.NumMethod(), len(described.Methods))
		}
		agree(t, d.Name, i, described.Methods)
		for _, object := range i.Types() {
			if of, ok := catalog.LookupType(object.Name); ok {
				agree(t, object.Name, object, of.Methods)
			} else {
				t.Errorf("type %s of service %q is not in the catalog", object.Name, d.Name)
			}
		}
	}
	if called < 5 {
		t.Errorf("only %d services were looked at", called)
	}
}

func agree(t *testing.T, name string, i *bridge.Interface, methods []catalog.Method) {
	t.Helper()
	var names, want []string
	for _, m := range i.Members {
		names = append(names, m.Name+" "+string(m.Kind)+" "+m.Signature)
	}
	for _, m := range methods {
		want = append(want, m.Name+" "+string(m.Kind)+" "+m.Signature)
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("%s has\n%s\nand the catalog\n%s", name, strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}

// What cannot be called is refused when the interface is made, not when it is called.
func TestInterfacesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name string
		d    cordis.ServiceDecl
		want string
	}{
		{"none", cordis.ServiceDecl{Name: "test-none"}, "no interface for plugins"},
		{"two_results", declared[interface{ Two() (int, string) }]("test-two"), "returns 2 values"},
		{"variadic", declared[interface{ Many(all ...int) }]("test-many"), "variadic"},
		{"nameless_object", declared[interface{ Object() interface{ Close() } }]("test-object"), "has no name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := bridge.Of(c.d); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// Names of Go, in JavaScript.
func TestNames(t *testing.T) {
	i, err := bridge.Of(declared[interface {
		ReadText()
		HTMLPage()
		URL()
		ID2()
		X()
	}]("test-names"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range i.Members {
		names = append(names, m.Name)
	}
	if got, want := strings.Join(names, " "), "htmlPage id2 readText url x"; got != want {
		t.Errorf("names are %s, want %s", got, want)
	}
}
