package testrig

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Planned is what a plan wants written, in words: verb, kind and name of each step,
// what a patch changes, and how a deletion is guarded. Steps are separated by
// commas, stages by semicolons.
func Planned(p act.Plan) string {
	stages := make([]string, 0, len(p.Stages))
	for _, stage := range p.Stages {
		steps := make([]string, 0, len(stage.Steps))
		for _, step := range stage.Steps {
			about := step.About()
			words := fmt.Sprintf("%s %s %s", step.Verb(), reflect.TypeOf(about).Elem().Name(), about.GetName())
			switch s := step.(type) {
			case act.Patch:
				words += " " + string(s.Data)
			case act.Delete:
				if s.Unchanged {
					words += " unchanged"
				}
				if s.Propagation != "" {
					words += " " + string(s.Propagation)
				}
			}
			steps = append(steps, strings.TrimSpace(words))
		}
		stages = append(stages, strings.Join(steps, ", "))
	}
	return strings.Join(stages, "; ")
}
