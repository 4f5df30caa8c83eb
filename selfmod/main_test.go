package selfmod_test

import (
	"testing"

	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }
