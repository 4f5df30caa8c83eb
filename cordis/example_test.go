package cordis_test

import (
	"context"
	"fmt"

	"github.com/dsh-go/dsh/cordis"
)

var (
	greeting = cordis.NewService[string]("example-greeting")
	visited  = cordis.NewEmit[string]("example/visited")
)

// A consumer waits for its service, runs, is parked when the service goes, and
// runs again when it is back.
func Example() {
	ctx := context.Background()
	root := cordis.New()
	consumer, _ := root.Mount(&cordis.Plugin{
		Name:   "greeter",
		Inject: cordis.Require("example-greeting"),
		Apply: func(c *cordis.Context, _ any) error {
			word, err := greeting.Use(c)
			if err != nil {
				return err
			}
			_, err = visited.On(c, func(_ context.Context, who string) { fmt.Println(word, who) })
			return err
		},
	}, nil)
	fmt.Println(consumer.State(), consumer.Waiting().Missing)

	provider := &cordis.Plugin{Name: "words", Apply: func(c *cordis.Context, config any) error {
		_, err := greeting.Provide(c, config.(string))
		return err
	}}
	for _, word := range []string{"hello", "bonjour"} {
		words, _ := root.Mount(provider, word)
		words.Await(ctx)
		consumer.Await(ctx)
		visited.Emit(ctx, root, "world")
		words.Dispose(ctx)
		fmt.Println(consumer.State())
	}
	// Output:
	// pending [{example-greeting not provided}]
	// hello world
	// pending
	// bonjour world
	// pending
}
