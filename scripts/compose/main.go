// Command compose prints what compose files mean, as JSON, as `docker compose
// config` would: the same parser, each file laid over those before it, .env (beside
// the first) and environment read the same way. It is a module of its own, so that
// the server depends on none of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("usage: compose FILE [OVERLAY...]"))
	}
	o, err := cli.NewProjectOptions(os.Args[1:], cli.WithOsEnv, cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		fail(err)
	}
	project, err := o.LoadProject(context.Background())
	if err != nil {
		fail(err)
	}
	text, err := project.MarshalJSON()
	if err != nil {
		fail(err)
	}
	fmt.Println(string(text))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "compose:", err)
	os.Exit(1)
}
