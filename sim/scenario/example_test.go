package scenario_test

import (
	"errors"
	"fmt"

	"github.com/heedproject/heed/sim/pack"
	"github.com/heedproject/heed/sim/scenario"
)

func ExampleRead() {
	world, err := scenario.Read("world.yaml", []byte(`
packs: [stripe]
steps:
  charges.create: 503 x2, commit-then-504, ok
`), pack.Named)
	fmt.Println(world.Packs[0].Name, err)

	_, err = scenario.Read("world.yaml", []byte("packs: [stripe]\nsede: 7\n"), pack.Named)
	if e, ok := errors.AsType[*scenario.Error](err); ok {
		fmt.Println(e.Problems[0].File, e.Problems[0].Line, e.Problems[0].Column)
	}
	// Output:
	// stripe <nil>
	// world.yaml 2 1
}
