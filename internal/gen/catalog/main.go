// Command catalog writes what is generated from the Go source of this module:
// selfmod/catalog/generated.go and docs/reference. Run it by go generate ./...
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dsh-go/dsh/internal/gen/reference"
)

func main() {
	if err := reference.Write(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
